"""Rank the checkpoints and seeds of runs, and state how reliable the ranking is."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.evaluation.evaluate_run import evaluate_offline
from drol.evaluation.offline import DISCOUNT, UPDATES
from drol.evaluation.support import leaves_support, support_warning
from drol.results.collect import find_runs
from drol.results.statistical_tests import Interval, newcombe_interval, wilson_interval
from drol.runs.config_file import CONFIG
from drol.runs.records import EvaluationRow, OfflineRow
from drol.runs.run import Run, open_run

logger = logging.getLogger(__name__)

SCORE, OFFLINE = "score", "offline value"
# How reliable each type of evidence was in the measurements of docs/offline-evaluation.md.
TRUST = {
    SCORE: "the mean score of its episodes in the simulator; the interval covers the episodes, not the training seeds",
    OFFLINE: (
        "the lower end of the interval of fitted-Q evaluation, from data alone. In our study (two mazes, "
        "docs/offline-evaluation.md) it chose neither a better checkpoint than the last one nor a better run reliably. "
        "It was up to 31 points too high; the error grew with the share of actions outside the support"
    ),
}


@dataclass(frozen=True)
class Candidate:
    """A saved policy with the evidence for its rank.

    Attributes:
        run: The folder of its run.
        step: The number of updates of its training.
        seed: The seed of its training.
        best_of: The number of actions that it drew for each step of its evaluation.
        value: Its score, or the lower end of the interval of its offline value.
        interval: The 95% interval of the score or the offline value; None if unknown.
        episodes: The number of episodes of its score.
        outside_support: The share of its actions outside the support of the data; None if not measured.
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
    """Ranked policies, best first. By offline value, policies that leave the support of the data come last.

    Attributes:
        candidates: The policies.
        evidence: The criterion of the ranking: "score" or "offline value".
        tied: The best policy, then the policies that do not differ significantly from it.
    """

    candidates: tuple[Candidate, ...]
    evidence: str
    tied: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        return self.candidates[0]

    @property
    def verdict(self) -> str:
        """Describe which policy to take and whether the evidence is decisive."""
        if self.evidence == OFFLINE and leaves_support(self.best.outside_support):
            return "no policy can be recommended: all of them leave the support of the data"
        if len(self.tied) == 1 and self.evidence == OFFLINE:
            return (
                "the first policy has the highest offline value inside the support of the data; only real trials can "
                "show whether it is better (`drol choose --trials`)"
            )
        if len(self.candidates) == 1:
            return "only one policy was found"
        if len(self.tied) == 1:
            return "the first policy is significantly better than each of the others"
        newest = max(self.tied, key=lambda each: (each.step, each.value))
        where = f"step {newest.step:,}, seed {newest.seed} of {newest.run}"
        return (
            f"{len(self.tied)} policies (*) do not differ significantly, including the first; without further "
            f"episodes, take the one that was trained longest: {where}"
        )

    @property
    def warnings(self) -> list[str]:
        """A sentence for each policy that leaves the support of the data; empty if scores rank."""
        found = self.candidates if self.evidence == OFFLINE else ()
        warnings = [
            support_warning(each.outside_support, f"step {each.step:,}, seed {each.seed} of {each.run}")
            for each in found
        ]
        return [words for words in warnings if words]


def choose(
    runs: Iterable[Run | Path | str], last: int | None = None, on_evaluation: Callable[[str], None] | None = None
) -> Choice:
    """Rank the saved policies of runs by scores or, without a simulator, by offline values.

    docs/offline-evaluation.md reports how reliable the ranking is.

    Args:
        runs: Runs of one task, their folders, or folders with runs below them.
        last: The number of last saved steps to take from each run; all if None.
        on_evaluation: Called with a line before a policy is evaluated by data, which takes about a minute.

    Returns:
        The ranking. If any policy has a score from episodes, scores rank and policies without a score are omitted;
        otherwise offline values rank. Offline values with different discounts are not comparable, so these policies are
        evaluated again with one discount. On a task without a simulator, the newest policies of a run without offline
        values are evaluated, too.
    """
    if last is not None:
        check_at_least("last", last, 1)
    opened = open_runs_of_one_task(runs)
    steps = {run: set(run.steps[-last:] if last else run.steps) for run in opened}
    found = [each for run in opened for each in scored(run, steps[run])]
    if found:
        return rank(found, SCORE)
    evaluate_alike(opened, steps, on_evaluation)
    found = [each for run in opened for each in valued(run, steps[run])]
    if found:
        return rank(found, OFFLINE)
    paths = " ".join(str(run.path) for run in opened)
    raise InputError(
        f"{paths}: no policy was evaluated; run episodes with `drol evaluate RUN`, or evaluate on data with "
        "`drol evaluate RUN --offline --every-step`"
    )


def open_runs_of_one_task(runs: Iterable[Run | Path | str]) -> list[Run]:
    """Open runs, and those below folders that are not runs; raise an error if they are of several tasks."""
    found = [each for run in runs for each in ([run] if isinstance(run, Run) else open_below(Path(run)))]
    opened = list({run.path.absolute(): run for run in found}.values())
    tasks = {run.config.task for run in opened}
    if len(tasks) != 1:
        raise InputError(f"the runs have {len(tasks)} tasks ({', '.join(sorted(tasks))}); give runs of one task")
    return opened


def open_below(path: Path) -> list[Run]:
    """Open the run in a folder, or all runs below it."""
    is_run = (path / CONFIG).is_file() or not path.is_dir()
    return [open_run(folder) for folder in ([path] if is_run else find_runs(path))]


def rank(found: Iterable[Candidate], evidence: str) -> Choice:
    """Rank policies by one type of evidence."""

    def place(each: Candidate) -> tuple:
        return evidence == OFFLINE and leaves_support(each.outside_support), -each.value, -each.step

    ranked = sorted(found, key=place)
    return Choice(tuple(ranked), evidence, tied_with_best(ranked))


def evaluate_alike(
    runs: Sequence[Run], steps: Mapping[Run, set[int]], on_evaluation: Callable[[str], None] | None
) -> None:
    """Evaluate policies on data until all offline values have the same discount and number of updates.

    The discount and number of updates are the most frequent ones among the existing values. On a task without a
    simulator, the newest policies of a run without offline values are evaluated, too.
    """
    rows = {run: [row for row in run.offline_evaluations if row.step in steps[run]] for run in runs}
    known = [(row.discount, row.updates) for own in rows.values() for row in own]
    discount, updates = Counter(sorted(known)).most_common(1)[0][0] if known else (DISCOUNT, UPDATES)
    for run in runs:
        # A set of (step, best_of); `evaluate_offline` evaluates all seeds.
        missing = {(row.step, row.best_of) for row in rows[run] if (row.discount, row.updates) != (discount, updates)}
        if not rows[run] and run.steps and run.task.make_environment is None:
            missing = {(run.steps[-1], run.config.algorithm.default_best_of)}
        for step, best_of in sorted(missing):
            if on_evaluation:
                on_evaluation(f"evaluating step {step:,} of {run.path} on data with discount {discount:g}")
            evaluate_offline(run, step, best_of=best_of, updates=updates, discount=discount)


def scored(run: Run, steps: set[int]) -> list[Candidate]:
    """Return the policies of a run that have scores; of several evaluations, use the one with the most episodes."""
    best: dict[tuple[int, int, int | None], EvaluationRow] = {}
    for row in [*run.evaluations, *run.extra_evaluations]:
        key = (row.step, row.seed, row.best_of)
        if row.score is None or row.step not in steps or row.acting:
            continue
        if not math.isfinite(row.score):
            leave_out(run, row.step, row.seed, "score", row.score)
            continue
        if key not in best or len(row.episodes) > len(best[key].episodes):
            best[key] = row
    return [
        Candidate(run.path, *key, row.score, score_interval(row), len(row.episodes), outside(run, row.step, row.seed))
        for key, row in best.items()
        if row.score is not None
    ]


def leave_out(run: Run, step: int, seed: int, what: str, value: float) -> None:
    """Warn of a policy whose value is not finite: NaN cannot be ranked."""
    logger.warning(f"left out: step {step:,}, seed {seed} of {run.path}: its {what} is {value}")


def score_interval(row: EvaluationRow) -> Interval | None:
    """Return the interval of a success rate; None for other scores."""
    count = len(row.episodes)
    if not count or not np.isclose(100 * row.successes / count, row.score or 0):
        return None
    low, high = wilson_interval(row.successes, count)
    return Interval(100 * low, 100 * high)


def valued(run: Run, steps: set[int]) -> list[Candidate]:
    """Return the policies of a run that have an offline value."""
    found = []
    for row in run.offline_evaluations:
        low, high = row.figures.get("value_low"), row.figures.get("value_high")
        if row.step not in steps or low is None or high is None:
            continue
        if not (math.isfinite(low) and math.isfinite(high)):
            leave_out(run, row.step, row.seed, "offline value", low if math.isfinite(high) else high)
        else:
            share = row.figures.get("outside_support")
            found.append(Candidate(run.path, row.step, row.seed, row.best_of, low, Interval(low, high), 0, share))
    return found


def outside(run: Run, step: int, seed: int) -> float | None:
    """Return the share of a policy's actions outside the support of the data; None if not measured."""
    rows: list[OfflineRow] = [row for row in run.offline_evaluations if (row.step, row.seed) == (step, seed)]
    if rows:
        return rows[-1].figures.get("outside_support")
    trained = [row.offline for row in run.evaluations if (row.step, row.seed) == (step, seed) and row.offline]
    return trained[-1].get("outside_support") if trained else None


@dataclass(frozen=True)
class Tried:
    """A policy for real trials.

    Attributes:
        name: The run's folder; with several seeds or steps, also `:seed` and `:step`.
        run: The folder of its run.
        step: The number of updates of its training.
        seed: The seed of its training.
        outside_support: The share of its actions outside the support of the data; None if not measured.
    """

    name: str
    run: Path
    step: int
    seed: int
    outside_support: float | None

    @property
    def warning(self) -> str | None:
        """A warning with advice if the policy leaves the support of the data, else None."""
        return support_warning(self.outside_support, self.name)


def policies_to_try(runs: Iterable[Run | Path | str], last: int = 1) -> list[Tried]:
    """Return policies for real trials, ordered by the existing evidence from data.

    Policies inside the support of the data come first; among them, higher offline values come first. This function
    evaluates nothing.

    Args:
        runs: Runs, or their folders, of one task.
        last: The number of last saved steps to take from each run.
    """
    check_at_least("last", last, 1)
    opened = open_runs_of_one_task(runs)
    rows = [row for run in opened for row in run.offline_evaluations]
    discount = Counter(sorted(row.discount for row in rows)).most_common(1)[0][0] if rows else DISCOUNT
    found = []
    for run in opened:
        values = {
            (row.step, row.seed): low
            for row in run.offline_evaluations
            if row.discount == discount and (low := row.figures.get("value_low")) is not None and math.isfinite(low)
        }
        steps, seeds = run.steps[-last:], run.config.seeds
        for step in reversed(steps):
            for seed in seeds:
                name = str(run.path) + (f":{seed}" if len(seeds) > 1 else "") + (f":{step}" if len(steps) > 1 else "")
                tried = Tried(name, run.path, step, seed, outside(run, step, seed))
                value = values.get((step, seed))
                found.append((leaves_support(tried.outside_support), value is None, -(value or 0.0), tried))
    if not found:
        raise InputError("these runs have no policy yet; train them first")
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])]


def tied_with_best(ranked: list[Candidate]) -> tuple[Candidate, ...]:
    """Return the first policy and all that it is not apart from (see `are_apart`)."""
    first = ranked[0]
    return (first, *(other for other in ranked[1:] if not are_apart(first, other)))


def are_apart(first: Candidate, other: Candidate) -> bool:
    """Return whether the first policy is clearly better.

    It is if only the other one leaves the support, or if the interval of their difference is above 0 (both were
    played), or if their intervals are separate.
    """
    if first.interval is None or other.interval is None:
        return False
    if not first.episodes and leaves_support(other.outside_support) and not leaves_support(first.outside_support):
        return True
    if first.episodes and other.episodes:
        rates = [(each.value * each.episodes / 100, each.episodes) for each in (first, other)]
        return newcombe_interval(*rates[0], *rates[1])[0] > 0
    return other.interval[1] < first.interval[0]
