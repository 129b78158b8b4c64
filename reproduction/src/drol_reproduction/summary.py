"""Make the tables of docs/results.md, which compare our own runs with the paper's claims."""

from collections.abc import Iterable, Sequence

import numpy as np

from drol.planning.planned_run import CANDIDATES
from drol.results.compare import NO_IQM
from drol.results.difference import Difference, differences_of
from drol.results.groups import Group, make_groups
from drol.results.merge import consistent
from drol.results.result import Result
from drol.results.statistical_tests import bootstrap_interval, interquartile_mean, probability_of_improvement
from drol.results.verdicts import enough_seeds, p_words
from drol_reproduction.experiments import COLUMNS, DEFAULT_K, TUNED, short_name
from drol_reproduction.mechanism import MechanismRow
from drol_reproduction.mechanism_verdicts import mechanism_tables
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.render import number
from drol_reproduction.scores import finished_seeds, groups_by_settings, rows_by_candidates, seed_scores
from drol_reproduction.table import TITLES, scores_by_cell

COMMAND = "drol paper summary"
ORDERED = "pointmaze-medium"  # the family on which all methods were run
SEEDED = "pointmaze-medium-navigate-singletask-task1-v0"  # the task of this family with several seeds
MARGIN = 5.0  # differences of fewer points do not matter
DIFFERENCES = (
    "method", "seeds", "mean", "lowest to highest seed", "minus DROL(16)", "95% interval", "p (Holm)", "verdict",
)  # fmt: skip
HEADS = TITLES | {TUNED: f"{TITLES[TUNED]} (K selected on these seeds)"}


def summary_tables(results: Iterable[Result], mechanism: Sequence[MechanismRow] = ()) -> dict[str, str]:
    """Return the tables of docs/results.md, as Markdown.

    Args:
        results: Results at the small scale.
        mechanism: The rows that `drol paper mechanism` wrote.

    Returns:
        "scores", "order", "differences", "candidates", "default", and the tables of `mechanism_tables`.
    """
    results = consistent(results)
    return {
        "scores": scores_table(results),
        "order": order_table(results),
        "differences": differences_table(results),
        "candidates": candidates_table(results),
        "default": default_table(results),
        **mechanism_tables(mechanism),
    }


def scores_table(results: Sequence[Result]) -> str:
    """Return the mean, the standard deviation and the number of seeds of every task and method that was run."""
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
    return markdown(("task", *(HEADS[method] for method in methods)), rows)


def order_table(results: Sequence[Result]) -> str:
    """Return the methods in the order of their mean over the point mazes; methods with fewer tasks come last.

    The table has interquartile means only if all methods have the same tasks and numbers of seeds.
    """
    scores = {key: own for key, own in scores_by_cell(results, "fql", []).items() if key[0].startswith(ORDERED)}
    shown = [each for each in COLUMNS if each != TUNED and any((task, each) in scores for task, _ in scores)]
    composition = {
        method: frozenset((task, len(own)) for (task, column), own in scores.items() if column == method)
        for method in shown
    }
    comparable = len({*composition.values()}) == 1
    rows = []
    for method in shown:
        own = {task: list(found.values()) for (task, column), found in scores.items() if column == method}
        shared = [task for task in own if (task, "drol") in scores]
        if not shared:
            continue
        ours, theirs = [own[task] for task in shared], [list(scores[task, "drol"].values()) for task in shared]
        mean = float(np.mean([np.mean(each) for each in own.values()]))
        tasks = list(own.values())
        center = (f"{interquartile_mean(tasks):.0f}", interval_over_seeds(tasks)) if comparable else ()
        chance = "-" if method == "drol" else f"{probability_of_improvement(ours, theirs):.2f}"
        rows.append(
            ((-len(own), -mean), (TITLES[method], len(own), sum(map(len, tasks)), f"{mean:.0f}", *center, chance))
        )
    middle = ("IQM of runs", "95% interval of IQM") if comparable else ()
    head = ("method", "tasks", "runs", "mean of tasks", *middle, "P(better than DROL(16))")
    table = markdown(head, [cells for _, cells in sorted(rows, key=lambda row: row[0])])
    return table if comparable or not rows else f"{table}\n\n{NO_IQM[0].upper()}{NO_IQM[1:]}."


def interval_over_seeds(tasks: Sequence[Sequence[float]]) -> str:
    """Return the interval of an interquartile mean over seeds, or "-" if a task has too few seeds."""
    if not enough_seeds(*map(len, tasks)):
        return "-"
    low, high = bootstrap_interval(interquartile_mean, tasks)
    return f"{low:.0f} to {high:.0f}"


def differences_table(results: Sequence[Result]) -> str:
    """Return each method's difference from DROL(16) on the task with several seeds, with interval and verdict."""
    groups: dict[str, Group] = {}
    for method in COLUMNS:
        rows = [row for row in results if (row.task, row.method) == (SEEDED, method)]
        if method == "drol":
            rows = [row for row in rows if row.setting(CANDIDATES) == DEFAULT_K]
        group = finished_group(rows, "last3")
        if group is not None:
            groups[method] = group
    base = groups.get("drol")
    pairs = [(group, base) for name, group in groups.items() if base is not None and name != "drol"]
    found = {each.group.rows[0].method: each for each in differences_of(pairs, MARGIN)}
    rows = []
    for method, group in sorted(groups.items(), key=lambda entry: -entry[1].scores.mean()) if base else ():
        scores = group.scores
        start = (TITLES[method], len(scores), f"{scores.mean():.0f}", f"{scores.min():.0f} to {scores.max():.0f}")
        rows.append((*start, *(("-",) * 4 if method == "drol" else difference_cells(found[method]))))
    return markdown(DIFFERENCES, rows)


def finished_group(rows: Sequence[Result], at: str) -> Group | None:
    """Return the finished seeds with the most common settings."""
    main = next(iter(groups_by_settings(row for row in rows if row.evaluation == "training")), [])
    done = {seed for _, seed in finished_seeds(main)}
    return next(iter(make_groups([row for row in main if row.seed in done], at)), None)


def difference_cells(difference: Difference) -> tuple[str, str, str, str]:
    """Return a difference, its interval, its corrected p value and the verdict."""
    known = difference.interval
    ends = f"{known.low:+.0f} to {known.high:+.0f}" if known else "-"
    return f"{difference.value:+.0f}", ends, p_words(difference.p), difference.words


def default_table(results: Sequence[Result]) -> str:
    """Return each K's difference from the default K, by the last three evaluations and by the last evaluation."""
    found: dict[tuple[str, int], list[tuple[Group, Group]]] = {}
    for task in sorted({row.task for row in results if row.method == "drol"}):
        own = rows_by_candidates(results, task)
        for count in sorted(own.keys() - {DEFAULT_K}):
            for at in ("last3", "last"):
                group, default = finished_group(own[count], at), finished_group(own.get(DEFAULT_K, []), at)
                if group is not None and default is not None:
                    found.setdefault((task, count), []).append((group, default))
    tested = iter(differences_of([pair for pairs in found.values() for pair in pairs], MARGIN))
    rows = [
        (short_name(task), count, *(cell for _ in pairs for cell in difference_cells(next(tested))))
        for (task, count), pairs in found.items()
    ]
    head = ("task", "K")
    for at in ("last three", "last"):
        head += (f"{at}, minus K = 16", "95% interval", "p (Holm)", "verdict")
    return markdown(head, rows)


def candidates_table(results: Sequence[Result]) -> str:
    """Return a table with a row for each K: scores of one-pass and of best-of-N acting, and diagnostics."""
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
    """Return mean and range, with the number of evaluated seeds if some seeds are missing."""
    played = f", {len(scores)} seed{'s' * (len(scores) > 1)}" if 0 < len(scores) < seeds else ""
    return mean_and_range(scores) + played
