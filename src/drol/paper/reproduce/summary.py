"""The tables of docs/results.md: what runs of our own say about the paper's claims."""

from collections.abc import Iterable, Sequence

import numpy as np

from drol.experiments.compare.compare import Difference, difference_of
from drol.experiments.compare.groups import Group, make_groups
from drol.experiments.compare.statistics import bootstrap_interval, interquartile_mean, probability_of_improvement
from drol.experiments.results.merge import consistent
from drol.experiments.results.result import Result
from drol.paper.argument.tables import markdown
from drol.paper.mechanism import MechanismRow
from drol.paper.planned import CANDIDATES
from drol.paper.reproduce.experiments import COLUMNS, DEFAULT_K, short_name
from drol.paper.reproduce.render import number
from drol.paper.reproduce.scores import finished_seeds, groups_by_settings, rows_by_candidates, seed_scores
from drol.paper.reproduce.table import TITLES, scores_by_cell

COMMAND = "drol paper summary"
ORDERED = "pointmaze-medium"  # the family on which all methods were run
SEEDED = "pointmaze-medium-navigate-singletask-task1-v0"  # its task on which they were run with several seeds
MARGIN = 5.0  # points that do not matter
DIFFERENCES = ("method", "seeds", "mean", "lowest to highest seed", "minus DROL(16)", "95% interval", "verdict")


def summary_tables(results: Iterable[Result], mechanism: Sequence[MechanismRow] = ()) -> dict[str, str]:
    """Return the tables of docs/results.md, as Markdown.

    Args:
        results: Results at the small scale.
        mechanism: What `drol paper mechanism` found in the runs of DROL.

    Returns:
        "scores", "order", "differences", "candidates", "default" and "ownership".
    """
    results = consistent(results)
    return {
        "scores": scores_table(results),
        "order": order_table(results),
        "differences": differences_table(results),
        "candidates": candidates_table(results),
        "default": default_table(results),
        "ownership": ownership_table(mechanism),
    }


def scores_table(results: Sequence[Result]) -> str:
    """Return mean, deviation and number of seeds of every task and method that was run."""
    scores = scores_by_cell(results, "fql", [])
    methods = [method for method in COLUMNS if any(method == column for _, column in scores)]
    rows = []
    for task in sorted({task for task, _ in scores}):
        cells = []
        for method in methods:
            own = list(scores.get((task, method), {}).values())
            deviation = float(np.std(own, ddof=1)) if len(own) > 1 else None
            cells.append(f"{number(float(np.mean(own)), deviation)} ({len(own)})" if own else "-")
        rows.append((short_name(task), *cells))
    return markdown(("task", *(TITLES[method] for method in methods)), rows)


def order_table(results: Sequence[Result]) -> str:
    """Return the methods by their mean over the mazes of a point; those of fewer tasks come last."""
    scores = {key: own for key, own in scores_by_cell(results, "fql", []).items() if key[0].startswith(ORDERED)}
    rows = []
    for method in (each for each in COLUMNS if each != "drol*"):
        own = {task: list(found.values()) for (task, column), found in scores.items() if column == method}
        shared = [task for task in own if (task, "drol") in scores]
        if not shared:
            continue
        ours, theirs = [own[task] for task in shared], [list(scores[task, "drol"].values()) for task in shared]
        mean = float(np.mean([np.mean(each) for each in own.values()]))
        numbers = (
            f"{mean:.0f}",
            f"{interquartile_mean(list(own.values())):.0f}",
            interval_over_seeds(list(own.values())),
            "-" if method == "drol" else f"{probability_of_improvement(ours, theirs):.2f}",
        )
        rows.append(((-len(own), -mean), (TITLES[method], len(own), sum(map(len, own.values())), *numbers)))
    head = ("method", "tasks", "runs", "mean of tasks", "IQM of runs", "95% interval of IQM", "P(better than DROL(16))")
    return markdown(head, [cells for _, cells in sorted(rows, key=lambda row: row[0])])


def interval_over_seeds(tasks: Sequence[Sequence[float]]) -> str:
    """Return the interval of an interquartile mean over seeds; a task with one seed would seem to be known exactly."""
    if min(map(len, tasks)) < 2:
        return "-"
    low, high = bootstrap_interval(interquartile_mean, tasks)
    return f"{low:.0f} to {high:.0f}"


def differences_table(results: Sequence[Result]) -> str:
    """Return how far each method is from DROL(16) on the task with several seeds, with its interval and a verdict."""
    groups: dict[str, Group] = {}
    for method in COLUMNS:
        rows = [row for row in results if (row.task, row.method) == (SEEDED, method)]
        if method == "drol":
            rows = [row for row in rows if row.setting(CANDIDATES) == DEFAULT_K]
        group = finished_group(rows, "last3")
        if group is not None:
            groups[method] = group
    found = [difference_of(groups[name], groups["drol"], MARGIN) for name in groups if "drol" in groups]
    rows = []
    for each in sorted(found, key=lambda each: -each.value):
        scores, method = each.group.scores, each.group.rows[0].method
        start = (TITLES[method], len(scores), f"{scores.mean():.0f}", f"{scores.min():.0f} to {scores.max():.0f}")
        rows.append((*start, *(("-", "-", "-") if method == "drol" else difference_cells(each))))
    return markdown(DIFFERENCES, rows)


def finished_group(rows: Sequence[Result], at: str) -> Group | None:
    """Return the seeds that were trained to their end, of the settings that most of them have."""
    main = next(iter(groups_by_settings(row for row in rows if row.evaluation == "training")), [])
    done = {seed for _, seed in finished_seeds(main)}
    return next(iter(make_groups([row for row in main if row.seed in done], at)), None)


def difference_cells(difference: Difference) -> tuple[str, str, str]:
    """Return a difference, its interval and the verdict."""
    known = difference.interval if len(difference.group.scores) > 1 else None  # else it would be of episodes alone
    ends = f"{known.low:+.0f} to {known.high:+.0f}" if known else "-"
    return f"{difference.value:+.0f}", ends, difference.words


def default_table(results: Sequence[Result]) -> str:
    """Return how far each K is from the default, by the last three evaluations and by the last one."""
    rows = []
    for task in sorted({row.task for row in results if row.method == "drol"}):
        own = rows_by_candidates(results, task)
        for count in sorted(own.keys() - {DEFAULT_K}):
            cells: list[str] = []
            for at in ("last3", "last"):
                group, default = finished_group(own[count], at), finished_group(own.get(DEFAULT_K, []), at)
                if group is not None and default is not None:
                    cells += difference_cells(difference_of(group, default, MARGIN))
            if cells:
                rows.append((short_name(task), count, *cells))
    head = (
        "task", "K", "last three, minus K = 16", "95% interval", "verdict", "last, minus K = 16", "95% interval",
        "verdict",
    )  # fmt: skip
    return markdown(head, rows)


def candidates_table(results: Sequence[Result]) -> str:
    """Return scores and diagnostics against K: in one pass and as the best of several."""
    tasks = sorted({row.task for row in results if row.method == "drol"})
    found = {task: rows_by_candidates(results, task) for task in tasks}
    groups = [(task, count, rows) for task, own in found.items() if len(own) > 1 for count, rows in sorted(own.items())]
    rows = []
    for task, candidates, own in groups:
        scores = list(seed_scores(own).values())
        if not scores:
            continue
        ends = [row for row in own if row.evaluation == "training" and row.step == row.steps]
        extra = [row for row in own if row.evaluation == "extra" and row.step == row.steps]
        cells = [best_of_words([row.score for row in extra if row.best_of == count], len(scores)) for count in (4, 16)]
        figures = [
            f"{np.mean([row.figures[name] for row in ends if name in row.figures]):.3f}"
            for name in ("routed_bc_loss", "candidate_distance", "candidate_divergence")
        ]
        last = mean_and_range([row.score for row in ends])
        rows.append((short_name(task), candidates, len(scores), mean_and_range(scores), last, *cells, *figures))
    head = (
        "task", "K", "seeds", "one pass, last three", "one pass, last", "best of 4", "best of 16",
        "routed BC loss", "pairwise distance", "divergence",
    )  # fmt: skip
    return markdown(head, rows)


def mean_and_range(scores: Sequence[float]) -> str:
    if not scores:
        return "-"
    return f"{np.mean(scores):.0f}" + (f" ({min(scores):.0f} to {max(scores):.0f})" if len(scores) > 1 else "")


def best_of_words(scores: Sequence[float], seeds: int) -> str:
    """Return mean and range, and of how many seeds where not all have been played."""
    played = f", {len(scores)} seed{'s' * (len(scores) > 1)}" if 0 < len(scores) < seeds else ""
    return mean_and_range(scores) + played


def ownership_table(mechanism: Sequence[MechanismRow]) -> str:
    """Return the mechanism at the end of training, against K."""
    last = {row.task: 0 for row in mechanism}
    for row in mechanism:
        last[row.task] = max(last[row.task], row.step)
    groups: dict[tuple[str, int], list[MechanismRow]] = {}
    for row in mechanism:
        if row.step == last[row.task]:
            groups.setdefault((row.task, row.candidates), []).append(row)
    rows = []
    for (task, candidates), own in sorted(groups.items()):
        gap, held = np.mean([row.q_gap for row in own]), np.mean([row.held for row in own])
        shown = [
            share_words([row.handover for row in own]),
            f"{1 - 1 / candidates:.0%}",
            f"{held:,.0f}",
            share_words([row.handoff for row in own]),
            share_words([row.cold for row in own]),
        ]
        rows.append((short_name(task), candidates, len(own), *shown, f"{gap:+.2f}"))
    head = (
        "task", "K", "seeds", "owner changed since the last checkpoint", "drawn by lot", "updates an owner holds",
        "lost by one step along Q", "latents that own nothing", "Q of winners minus others",
    )  # fmt: skip
    return markdown(head, rows)


def share_words(shares: Sequence[float | None]) -> str:
    """Return the mean of shares; with one checkpoint it is not known which owners changed."""
    known = [share for share in shares if share is not None]
    return f"{np.mean(known):.0%}" if known else "-"
