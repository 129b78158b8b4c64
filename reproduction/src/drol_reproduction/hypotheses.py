"""Test the hypotheses H1 to H4 and expectation M4 of results/plan_2026-11-18.md with its planned runs.

H1: DROL(16) scores above frozen routing, and H2: above a random winner, on cube-single-task2 (Welch's t test).
H3: DROL(16) scores above DROL(1), and H4: above IQL, on scene-task2 (exact permutation test).
M4: on scene-task2 the routed loss falls and the candidate distance grows from K = 1 to K = 64.

The tests are one-sided at 5%, with Holm's correction for all four. A hypothesis is tested once, when all planned seeds
are finished, because repeated tests after every further seed would find false differences. Until then it counts with
p = 1 in the correction. A score is the mean of the last three evaluations of 50 episodes.
"""

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from drol.planning.planned_run import CANDIDATES, PlannedRun
from drol.results.collect import changed_settings
from drol.results.merge import consistent
from drol.results.result import Result
from drol.results.statistical_tests import holm
from drol.results.verdicts import LEVEL, p_words
from drol_reproduction.experiments import BLOCKS, CUBE, DEFAULT_K, SCENE, TUNED, short_name
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.protocol import shown
from drol_reproduction.published import Published, candidate_curves, task_cells
from drol_reproduction.render import number
from drol_reproduction.scores import seed_scores
from drol_reproduction.table import TITLES

COMMAND = "drol paper hypotheses"
PLANNED = (("short", "table1"), ("medium", "table1"), ("medium", "controls"), ("short", "controls"), ("short", "fig3"))
LEAST_POINTS = 10.0  # minimum difference of DROL(16) above DROL(1)
SUPPORTED, UNCORRECTED, FAILED, OPEN = "supported", "only without correction", "not supported", "not finished"
FIGURE_3 = ("candidate_distance", "routed_bc_loss")

Test = Callable[[Sequence[float], Sequence[float]], float]


@dataclass(frozen=True)
class PlannedGroup:
    """The seeds of a planned run, and their results.

    Attributes:
        run: The planned run, with all planned seeds.
        rows: The results with its task, method, settings and number of updates.
    """

    run: PlannedRun
    rows: tuple[Result, ...]

    @functools.cached_property
    def scores(self) -> tuple[float, ...]:
        """The score of each planned seed that is finished."""
        found = seed_scores(self.rows)
        return tuple(found[seed] for seed in self.run.seeds if seed in found)

    @property
    def finished(self) -> bool:
        return len(self.scores) == len(self.run.seeds)


@dataclass(frozen=True)
class Outcome:
    """The test result of a hypothesis.

    Attributes:
        name: "H1" to "H4".
        words: The hypothesis.
        first: The scores of DROL(16).
        second: The scores of the other method.
        p: The one-sided p value; None before all planned seeds are finished.
        corrected: The p value after Holm's correction for all four.
        verdict: "supported", "only without correction", "not supported" or "not finished".
    """

    name: str
    words: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    p: float | None
    corrected: float | None
    verdict: str


def planned_groups(results: Iterable[Result]) -> list[PlannedGroup]:
    """Return every planned group of runs with its results, in the order of the plan."""
    results = consistent(results)
    return [PlannedGroup(run, tuple(rows_of(results, run))) for run in planned_runs()]


@functools.cache
def planned_runs() -> tuple[PlannedRun, ...]:
    """Return the planned runs, each with all of its seeds."""
    return tuple(
        PlannedRun(scale, task, method, tuple(range(block.seeds)), dict(candidates) | dict(block.changes))
        for scale, experiment in PLANNED
        for block in BLOCKS[scale][experiment]
        for task, method in itertools.product(block.tasks, block.methods)
        for candidates in ([((CANDIDATES, count),) for count in block.candidates] if method == "drol" else [()])
        if method != TUNED
    )


def rows_of(results: Iterable[Result], run: PlannedRun) -> Iterator[Result]:
    """Yield the evaluations of runs with a planned run's task, method, settings and number of updates."""
    settings = settings_of(run)
    for row in results:
        same_run = (row.task, row.method, row.steps, row.evaluation) == (run.task, run.method, run.steps, "training")
        if same_run and json.loads(row.settings) == settings:
            yield row


def settings_of(run: PlannedRun) -> dict[str, Any]:
    """Return the settings of a planned run that are not defaults, in the format of its results."""
    return json.loads(changed_settings(run.settings, {}, run.steps))


def own_changes(run: PlannedRun) -> dict[str, Any]:
    """Return the method's settings that differ from the scale's, without the numbers of updates."""
    return {name: value for name, value in run.changes.items() if name not in ("steps", "evaluation_interval")}


def label_of(run: PlannedRun) -> str:
    """Return the name of the method in tables, with its changes, such as `DROL(16), q_weight 0`."""
    changes = own_changes(run)
    count = changes.pop(CANDIDATES, None)
    name = TITLES.get(run.method, run.method) if count is None else f"DROL({count})"
    return ", ".join([name, *(f"{name} {shown(value)}" for name, value in changes.items())])


def one_group(groups: Iterable[PlannedGroup], scale: str, task: str, method: str, **settings: object) -> PlannedGroup:
    """Return the planned group of a method with some settings that differ from the scale's."""
    (found,) = (
        each
        for each in groups
        if (each.run.preset, each.run.task, each.run.method) == (scale, task, method)
        and own_changes(each.run) == settings
    )
    return found


def outcomes(groups: Sequence[PlannedGroup]) -> list[Outcome]:
    """Return the test results of H1 to H4."""
    of = functools.partial(one_group, groups, "medium")
    cube, scene = of(CUBE[0], "drol", num_candidates=DEFAULT_K), of(SCENE[0], "drol", num_candidates=DEFAULT_K)
    pairs: dict[str, tuple[str, PlannedGroup, PlannedGroup, Test]] = {
        "H1": ("above frozen routing, cube-single-task2", cube, of(CUBE[0], "drol-control", winner="lagged"), welch),
        "H2": ("above a random winner, cube-single-task2", cube, of(CUBE[0], "drol-control", winner="random"), welch),
        "H3": ("above DROL(1), scene-task2", scene, of(SCENE[0], "drol", num_candidates=1), permutation),
        "H4": ("above IQL, scene-task2", scene, of(SCENE[0], "iql"), permutation),
    }
    p_values = {
        name: test(first.scores, second.scores) if first.finished and second.finished else None
        for name, (_, first, second, test) in pairs.items()
    }
    corrected = dict(zip(pairs, holm([1.0 if p is None else p for p in p_values.values()]), strict=True))
    return [
        Outcome(
            name, words, first.scores, second.scores, p_values[name],
            None if p_values[name] is None else corrected[name],
            verdict_of(name, first.scores, second.scores, p_values[name], corrected[name]),
        )
        for name, (words, first, second, _) in pairs.items()
    ]  # fmt: skip


def verdict_of(name: str, first: Sequence[float], second: Sequence[float], p: float | None, corrected: float) -> str:
    """Return the verdict that the plan fixes for a p value."""
    if p is None:
        return OPEN
    if p > LEVEL or (name == "H3" and np.mean(first) - np.mean(second) < LEAST_POINTS):
        return FAILED
    return SUPPORTED if corrected <= LEVEL else UNCORRECTED


def welch(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the one-sided p value of Welch's t test, or of a permutation test if both groups have no variance."""
    if np.ptp(first) == np.ptp(second) == 0:
        return permutation(first, second)
    found: Any = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    return float(found.pvalue)


def permutation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the one-sided p value of the exact permutation test of the difference of means."""
    pooled, count = np.asarray([*first, *second]), len(first)
    sums = np.asarray([pooled[list(chosen)].sum() for chosen in itertools.combinations(range(len(pooled)), count)])
    return float(np.mean(sums >= np.sum(first) - 1e-9))


def hypothesis_tables(results: Iterable[Result]) -> dict[str, str]:
    """Return the tables "runs", "hypotheses" and "figure 3" of docs/results.md."""
    groups = planned_groups(results)
    return {
        "runs": runs_table(groups),
        "hypotheses": outcomes_table(outcomes(groups)),
        "figure 3": figure_table(groups),
    }


def runs_table(groups: Iterable[PlannedGroup]) -> str:
    """Return a line for each planned group: its number of finished seeds, its score and the published score."""
    rows = []
    for group in (each for each in groups if not is_of_figure(each.run)):
        run, scores = group.run, group.scores
        score = number(float(np.mean(scores)), deviation(scores)) if scores else "-"
        known = published_score(run)
        theirs = number(known.mean, known.deviation) if known else "-"
        seeds = f"{len(scores)} of {len(run.seeds)}"
        rows.append((short_name(run.task), label_of(run), run.preset, f"{run.steps:,}", seeds, score, theirs))
    head = ("task", "method", "scale", "updates", "seeds", "score", "published, 1,000,000 updates")
    return markdown(head, rows)


def deviation(scores: Sequence[float]) -> float | None:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else None


def published_score(run: PlannedRun) -> Published | None:
    """Return the score in the paper's table if the run has the method's own settings (K = 16 for DROL), else None."""
    usual = own_changes(run) in ({}, {CANDIDATES: DEFAULT_K})
    return task_cells().get((run.task, run.method)) if usual else None


def outcomes_table(found: Iterable[Outcome]) -> str:
    rows = []
    for each in found:
        sides = [f"{np.mean(side):.0f} ({len(side)})" if side else "- (0)" for side in (each.first, each.second)]
        rows.append((each.name, each.words, *sides, p_words(each.p), p_words(each.corrected), each.verdict))
    return markdown(("", "DROL(16) is", "DROL(16) (seeds)", "other side (seeds)", "p", "p (Holm)", "verdict"), rows)


def figure_table(groups: Sequence[PlannedGroup]) -> str:
    """Return our candidate distance and routed loss beside the digitised values of figure 3, and the verdict on M4."""
    ours, theirs = dict(figure_values(groups)), candidate_curves()[SCENE[0]]
    rows = []
    for count in sorted(theirs[FIGURE_3[0]]):
        own = ours.get(count, {})
        cells = [
            f"{value:.{digits}f}" if value is not None else "-"
            for name, digits in zip(FIGURE_3, (3, 4), strict=True)
            for value in (own.get(name), theirs[name].get(count))
        ]
        rows.append((count, *cells))
    table = markdown(("K", "candidate distance, ours", "paper", "routed BC loss, ours", "paper"), rows)
    return f"{table}\n\nM4: {monotone_words(ours)}."


def figure_values(groups: Iterable[PlannedGroup]) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Yield K and the diagnostics of the finished runs of figure 3."""
    for group in groups:
        rows = [row for row in group.rows if row.step == row.steps and {*FIGURE_3} <= {*row.figures}]
        if is_of_figure(group.run) and rows:
            yield rows[0].setting(CANDIDATES), {n: float(np.mean([row.figures[n] for row in rows])) for n in FIGURE_3}


def is_of_figure(run: PlannedRun) -> bool:
    """Return whether a run belongs to figure 3; scores of such runs are not reported."""
    return (run.preset, run.task) == ("short", SCENE[0])


def monotone_words(ours: Mapping[int, Mapping[str, float]]) -> str:
    """Return the verdict on M4."""
    planned = sorted(next(block.candidates for block in BLOCKS["short"]["fig3"]))
    if not {*planned} <= {*ours}:
        done = ", ".join(f"K = {count}" for count in planned if count in ours) or "none"
        return f"{OPEN}; finished: {done} of K = {', '.join(map(str, planned))}"
    distance, loss = ([ours[count][name] for count in planned] for name in FIGURE_3)
    grows, falls = bool(np.all(np.diff(distance) > 0)), bool(np.all(np.diff(loss) < 0))
    words = f"the distance {'grows' if grows else 'does not grow'} and the loss {'falls' if falls else 'does not fall'}"
    return f"{'passed' if grows and falls else 'failed'}; {words} from each K to the next"
