"""Choose a policy among the checkpoints and seeds of runs, and say how far the choice may be trusted."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.experiments.compare.statistics import Interval, newcombe_interval, wilson_interval
from drol.runs.rows import EvaluationRow, OfflineRow
from drol.runs.run import Run, open_run

SCORE, OFFLINE = "score", "offline value"
# What docs/offline-evaluation.md measured: how often each kind of evidence was right.
TRUST = {
    SCORE: "episodes in the simulator, judged by the score that they had; the interval is that of the episodes alone",
    OFFLINE: (
        "the lower end of fitted-Q evaluation, by data alone. In the study that was made (two mazes, "
        "docs/offline-evaluation.md) it did not choose a checkpoint of a run reliably better than taking the last one, "
        "nor a run by its score; it was up to 31 points too high, the more the more actions lay outside the support"
    ),
}


@dataclass(frozen=True)
class Candidate:
    """A saved policy, and what is known of it.

    Attributes:
        run: Where it is.
        step: The updates that it had.
        seed: The seed that trained it.
        best_of: The actions that it drew for each step when it was judged.
        value: By which it is ranked: its score, or the lower end of its offline value.
        interval: What this leaves open; None where it is not known.
        episodes: Episodes behind a score.
        outside_support: The share of its actions outside the support of the data; None where that was not measured.
    """

    run: Path
    step: int
    seed: int
    best_of: int | None
    value: float
    interval: Interval | None
    episodes: int = 0
    outside_support: float | None = None


@dataclass(frozen=True)
class Choice:
    """Policies in their order, the best first.

    Attributes:
        candidates: The policies.
        evidence: What they are ranked by: "score" or "offline value".
        tied: Those that cannot be told from the best by this evidence, the best itself first.
    """

    candidates: tuple[Candidate, ...]
    evidence: str
    tied: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def verdict(self) -> str:
        """In words: what to take, and whether the evidence decides."""
        if len(self.tied) == 1:
            return "the first is better than each of the others by this evidence"
        newest = max(self.tied, key=lambda each: (each.step, each.value))
        where = f"step {newest.step:,}, seed {newest.seed} of {newest.run}"
        return (
            f"{len(self.tied)} of them (*) cannot be told from the first by this evidence, itself included; without "
            f"more of it, take the one that was trained longest: {where}"
        )


def choose(runs: Iterable[Run | Path | str], last: int | None = None) -> Choice:
    """Rank the saved policies of runs by what is known of them.

    Args:
        runs: Runs, or their folders, of one task.
        last: Take only the last so many saved steps of each run; all if None.

    Returns:
        The ranking. Where any policy has a score from episodes, scores rank and policies without one are left out;
        otherwise what `drol evaluate --offline` found ranks.
    """
    if last is not None:
        check_at_least("last", last, 1)
    opened = [run if isinstance(run, Run) else open_run(run) for run in runs]
    tasks = {run.config.task for run in opened}
    if len(tasks) != 1:
        raise InputError(f"the runs are of {len(tasks)} tasks ({', '.join(sorted(tasks))}); give runs of one")
    steps = {run: set(run.steps[-last:] if last else run.steps) for run in opened}
    for evidence, find in ((SCORE, scored), (OFFLINE, valued)):
        found = [each for run in opened for each in find(run, steps[run])]
        if found and evidence == OFFLINE:
            check_same_judgement(opened, steps)
        if found:
            ranked = sorted(found, key=lambda each: (-each.value, -each.step))
            return Choice(tuple(ranked), evidence, tied_with_best(ranked))
    paths = " ".join(str(run.path) for run in opened)
    raise InputError(
        f"nothing is known of the policies in {paths}; play episodes with `drol evaluate RUN`, or judge them by data "
        "with `drol evaluate RUN --offline --every-step`"
    )


def scored(run: Run, steps: set[int]) -> list[Candidate]:
    """Return the policies of a run that played episodes; of several evaluations the one with the most."""
    best: dict[tuple[int, int, int | None], EvaluationRow] = {}
    for row in [*run.evaluations, *run.extra_evaluations]:
        key = (row.step, row.seed, row.best_of)
        if row.score is None or row.step not in steps or row.acting:
            continue
        if key not in best or len(row.episodes) > len(best[key].episodes):
            best[key] = row
    return [
        Candidate(run.path, *key, row.score, score_interval(row), len(row.episodes), outside(run, row.step, row.seed))
        for key, row in best.items()
        if row.score is not None
    ]


def score_interval(row: EvaluationRow) -> Interval | None:
    """Return the interval of a share of successes; None for other scores."""
    count = len(row.episodes)
    if not count or not np.isclose(100 * row.successes / count, row.score or 0):
        return None
    low, high = wilson_interval(row.successes, count)
    return Interval(100 * low, 100 * high)


def valued(run: Run, steps: set[int]) -> list[Candidate]:
    """Return the policies of a run that were judged by data alone."""
    found = []
    for row in run.offline_evaluations:
        low, high = row.figures.get("value_low"), row.figures.get("value_high")
        if row.step in steps and low is not None and high is not None:
            share = row.figures.get("outside_support")
            found.append(Candidate(run.path, row.step, row.seed, row.best_of, low, Interval(low, high), 0, share))
    return found


def check_same_judgement(runs: Iterable[Run], steps: dict[Run, set[int]]) -> None:
    """Refuse offline values of different discounts or lengths of fitted-Q evaluation: they do not compare."""
    rows = [row for run in runs for row in run.offline_evaluations if row.step in steps[run]]
    for name in ("discount", "updates"):
        found = sorted({getattr(row, name) for row in rows})
        if len(found) > 1:
            raise InputError(
                f"offline values with {name} {' and '.join(map(str, found))} do not compare; judge all alike with "
                f"`drol evaluate RUN --offline --every-step --{name} {found[-1]}`"
            )


def outside(run: Run, step: int, seed: int) -> float | None:
    """Return the share of a policy's actions outside the support of the data, where that was measured."""
    rows: list[OfflineRow] = [row for row in run.offline_evaluations if (row.step, row.seed) == (step, seed)]
    return rows[-1].figures.get("outside_support") if rows else None


def tied_with_best(ranked: list[Candidate]) -> tuple[Candidate, ...]:
    """Return the first, and those that overlap with it: by the difference of rates, or by their intervals."""
    first = ranked[0]
    return (first, *(other for other in ranked[1:] if not are_apart(first, other)))


def are_apart(first: Candidate, other: Candidate) -> bool:
    """Return whether the first is better than another by their evidence."""
    if first.interval is None or other.interval is None:
        return False
    if first.episodes and other.episodes:
        rates = [(each.value * each.episodes / 100, each.episodes) for each in (first, other)]
        return newcombe_interval(*rates[0], *rates[1])[0] > 0
    return other.interval[1] < first.interval[0]
