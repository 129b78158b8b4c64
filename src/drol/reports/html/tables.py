"""The tables of a report: scores, offline evaluations, settings."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, sem

from drol.algorithms import Algorithm
from drol.runs.records import EvaluationRow, OfflineRow
from drol.runs.run import Run
from drol.tasks.base import Episode, Task, success_rate

# Metrics of an offline evaluation: name, title, format, meaning.
OFFLINE_FIGURES = (
    ("single_sample_error", "error of 1", ".3f",
     "squared distance of one action of the policy to the held-out action, per dimension; lower is better"),
    ("routed_bc_loss", "error of 16", ".3f", "the same for the nearest of 16 actions; lower is better"),
    ("support_ratio", "distance/data", ".2f",
     "distance to the data's actions in similar states, divided by that of held-out actions; "
     "1 for a policy that only copies"),
    ("outside_support", "outside", ".1%",
     "share of actions that are farther from the data than 95% of held-out actions; 5% for a policy that only copies"),
    ("draw_ratio", "draw/data", ".2f",
     "the same ratio for a random draw, before the critic chooses; lower is better"),
    ("value", "value", ".2f",
     "discounted value of the first states of trajectories, by fitted-Q evaluation; higher is better"),
    ("value_low", "from", ".2f", "lower end of the 95% bootstrap interval of that value"),
    ("value_high", "to", ".2f", "its upper end"),
    ("value_rank", "rank", ".2f", "rank correlation of that Q with returns of held-out trajectories; at best 1"),
    ("value_bias", "bias", ".2f", "mean of that Q minus these returns"),
    ("own_value", "own value", ".2f", "the value by the method's own critic"),
    ("own_rank", "own rank", ".2f", "rank correlation of that critic with returns of held-out trajectories"),
    ("own_bias", "own bias", ".2f", "mean of that critic minus these returns"),
)  # fmt: skip


def what_it_plays(algorithm: Algorithm, row: EvaluationRow | None = None) -> str:
    """Describe how a policy acts in each state: in an evaluation, or by default."""
    count = algorithm.default_best_of if row is None or row.best_of is None else row.best_of
    one = "one draw" if algorithm.draws_actions else "its one action"
    acting = "" if row is None else "".join(f", {name} {value}" for name, value in row.acting.items())
    return (f"the best of {count} draws" if count > 1 else one) + acting


def scores_success(task: Task) -> bool:
    """Return whether the score of a task is a success rate."""
    return task.score is success_rate or task.score_name.startswith("success")


def success_interval(episodes: Sequence[Episode]) -> tuple[float, float]:
    """Return the 95% interval (Wilson) of the probability of success, given these episodes."""
    interval = binomtest(sum(episode.success for episode in episodes), len(episodes)).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def spread_of(episodes: Sequence[Episode], task: Task) -> str:
    """Return the uncertainty over episodes: the interval of success, or the standard error of the return."""
    if scores_success(task):
        low, high = success_interval(episodes)
        return f"{100 * low:.0f} to {100 * high:.0f}"
    returns = [episode.total_reward for episode in episodes]
    error = f" ± {sem(returns):.3g}" if len(returns) > 1 else ""
    return f"{np.mean(returns):.4g}{error}"


def score_table(run: Run, scored: Sequence[EvaluationRow]) -> str:
    """Return the last scores of every seed and those of extra evaluations, with their uncertainty."""
    last = max(row.step for row in scored)
    rows = [(row, "") for row in scored if row.step == last]
    rows += [(row, ", afterwards") for row in run.extra_evaluations if row.score is not None]
    spread = "95% interval of success" if scores_success(run.task) else "return ± standard error"
    cells = []
    for row, when in rows:
        broken = f" ({len(row.failures)} broke)" if row.failures else ""
        cells.append((
            what_it_plays(run.config.algorithm, row) + when, f"{row.step:,}", row.seed, f"{row.score:.1f}",
            spread_of(row.episodes, run.task), f"{len(row.episodes)}{broken}",
            f"{np.median([episode.length for episode in row.episodes]):.0f}",
        ))  # fmt: skip
    return table(("played", "updates", "seed", "score", spread, "episodes", "median length"), cells)


def offline_table(rows: Sequence[OfflineRow]) -> str:
    """Return the metrics of offline evaluations, a line for each policy, and their meanings."""
    options = {"best of": [row.best_of for row in rows], "discount": [f"{row.discount:g}" for row in rows]}
    columns: dict[str, list] = {"updates": [f"{row.step:,}" for row in rows], "seed": [row.seed for row in rows]}
    columns |= {title: column for title, column in options.items() if len(set(column)) > 1}
    meanings = [f"{title} {column[0]}" for title, column in options.items() if title not in columns]
    for name, title, form, words in OFFLINE_FIGURES:
        values = [row.figures.get(name) for row in rows]
        if any(value is not None for value in values):
            columns[title] = ["-" if value is None else format(value, form) for value in values]
            meanings.append(f"{title}: {words}")
    points = "".join(f"<li>{html.escape(words)}</li>" for words in meanings)
    return f"{table(columns, zip(*columns.values(), strict=True))}<ul>{points}</ul>"


def table(titles: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table with a line of titles."""
    head = "".join(f"<th>{html.escape(str(title))}</th>" for title in titles)
    lines = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='wide'><table class='scores'><tr>{head}</tr>{body}</table></div>"


def settings_table(values: Mapping[str, Any]) -> str:
    """Return a table with a line for each value except None."""

    def shown(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{name} = {each!r}" for name, each in value.items())
        return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    rows = (
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(shown(value))}</td></tr>"
        for name, value in values.items()
        if value is not None
    )
    return f"<table>{''.join(rows)}</table>"
