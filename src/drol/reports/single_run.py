"""Parts of a page for a single run: its score, another run's dashed curves."""

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np

from drol.reports.drawn_actions import ROUTING, routes
from drol.reports.html.tables import score_table, what_it_plays
from drol.reports.learning_curves import Chart, Values, seed_line
from drol.reports.selected_runs import Found
from drol.results.compare import Comparison
from drol.runs.records import EvaluationRow, MetricsRow
from drol.runs.run import Run

BESIDE = -2  # the group of another run's lines; the legend cannot hide it


def scored_rows(run: Run) -> list[EvaluationRow]:
    """Return the evaluations of a run with a finite score."""
    return [row for row in run.evaluations if row.score is not None and math.isfinite(row.score) and row.episodes]


def headline(run: Run, comparison: Comparison | None, found: Found) -> str:
    """Return the mean of the last scores, and the table of scores."""
    scored, task = scored_rows(run), found.task_of(run)
    if not scored or comparison is None:
        judged = "no simulator: this run was evaluated on held-out data, without a score"
        only_data = task is not None and task.make_environment is None
        return f"<p class='lead'>{judged if only_data else 'this run has not been evaluated yet'}</p>"
    last = max(row.step for row in scored)
    scores = [row.score for row in scored if row.step == last and row.score is not None]
    seeds = f", mean of {len(scores)} seeds" if len(scores) > 1 else ""
    name = task.score_name if task is not None else comparison.groups[0].score_name
    words = html.escape(f"{name} after {last:,} updates{seeds}")
    table = score_table(run, scored) if task is not None else ""
    return f"<p class='lead'><b>{np.mean(scores):.1f}</b> {words}</p>{table}"


def played_words(run: Run) -> str:
    """Describe how the policy acted in the evaluations during training."""
    counts = sorted({len(row.episodes) for row in scored_rows(run)})
    episodes = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    algorithm = run.config.algorithm
    chosen = ", which the critic chose" if algorithm.default_best_of > 1 else ""
    played = f"In each state the policy took {what_it_plays(algorithm)}{chosen}."
    return f"A point of a seed is its score over {episodes} episodes. {played}"


def beside_chart(chart: Chart, others: Mapping[str, Values], beside: Run) -> Chart:
    """Return a chart with the same metric of another run, dashed."""
    added = [
        seed_line(own, sorted(own), f"{beside.path.name}, seed {seed}", BESIDE, dashed=True)
        for seed, own in sorted(others.get(chart["name"], {}).items())
    ]
    return chart | {"series": [*chart["series"], *added]}


def beside_words(run: Run, beside: Run) -> str:
    """Explain the dashed curves, and compare the distances of both runs' winners from the data."""
    if not beside.metrics:
        return ""
    words = f" Dashed: the run in `{beside.path.name}`."
    if not routes(run.metrics) or not routes(beside.metrics):
        return words
    ends = [last_loss(each.metrics) for each in (run, beside)]
    return (
        f"{words} The nearest candidate ends at {ends[0]:.3f} here and at {ends[1]:.3f} there: "
        f"{ends[0] / ends[1]:.1f} times the squared distance from the data. A ratio above 1 is the cost of following "
        "Q: data without a candidate nearby."
    )


def last_loss(rows: Sequence[MetricsRow]) -> float:
    """Return the distance of winners from the data in the last row of each seed."""
    known = [row for row in rows if ROUTING[0] in row.values]
    last = max(row.step for row in known)
    return float(np.mean([row.values[ROUTING[0]] for row in known if row.step == last]))
