"""The runs of a sweep; for successive halving, the runs that reached each rung."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drol.errors import InputError
from drol.planning.planned_run import PlannedRun, RunStatus, shown
from drol.sweeps.asha import Choice, decide, read_decisions
from drol.sweeps.failures import read_failures
from drol.sweeps.objective import metric_at
from drol.sweeps.search import choices
from drol.sweeps.sweep import Sweep


@dataclass(frozen=True)
class SweptRun:
    """A run of a sweep and its current status."""

    run: PlannedRun  # with the steps of its current rung
    status: RunStatus
    choice: dict[str, object]  # the values of the parameters
    whole: PlannedRun  # the same run with all steps
    rung: int = 0
    dropped: bool = False  # whether successive halving stopped it
    failure: str | None = None
    value: float | None = None  # the metric on the highest rung that it finished, averaged over seeds
    compared_at: int = 0  # the steps of that rung

    @property
    def ended(self) -> bool:
        return self.status.done or self.failure is not None

    @property
    def key(self) -> Choice:
        return self.run.task, self.run.method, self.run.label

    @property
    def words(self) -> str:
        """The method and the values of its parameters, as text."""
        return " ".join([self.run.method, *(f"{name}={shown(value)}" for name, value in self.choice.items())])


def planned_runs(sweep: Sweep) -> list[tuple[PlannedRun, dict[str, object]]]:
    """Return all runs of a sweep with their parameter values, ordered by seeds first."""
    groups = [
        sweep.seeds[first : first + sweep.seeds_per_run] for first in range(0, len(sweep.seeds), sweep.seeds_per_run)
    ]
    chosen = {method: list(choices(sweep, method)) for method in sweep.methods}
    found: dict[str, tuple[PlannedRun, dict[str, object]]] = {}
    for seeds in groups:
        for task in sweep.task_names:
            for method in sweep.methods:
                for choice in chosen[method]:
                    run = PlannedRun(sweep.preset, task, method, seeds, {**sweep.settings, **choice})
                    known, _ = found.setdefault(run.name, (run, choice))
                    if known is not run and known.config != run.config:
                        raise InputError(f"two runs with different settings would share the folder {run.name}")
    check_rungs(sweep, [run for run, _ in found.values()])
    return list(found.values())


def check_rungs(sweep: Sweep, runs: Iterable[PlannedRun]) -> None:
    """Raise `InputError` for rungs at which a resumed run would not be bit-identical to an uninterrupted run."""
    for config in {id(run.settings): run.settings for run in runs}.values() if sweep.search.at else ():
        if config.online_steps:
            raise InputError("successive halving is for offline training; leave online_steps out")
        for step in sweep.search.at:
            if step >= config.steps:
                raise InputError(f"search.at has {step}; it must be below the {config.steps:,} steps of the runs")
            for name in ("evaluation_interval", "log_interval"):
                if step % getattr(config, name):
                    raise InputError(
                        f"search.at has {step}; it must be a multiple of {name}, which is {getattr(config, name)}"
                    )


def swept_runs(sweep: Sweep) -> list[SweptRun]:
    """Return all runs of a sweep with their status.

    The status is read from the folders of the runs and, for asynchronous halving, from the recorded decisions.
    """
    planned, failures = planned_runs(sweep), read_failures(sweep.root)
    if sweep.search.kind == "asha":
        return undecided_runs(sweep, planned, failures)
    rungs = (*sweep.search.at, None)
    found: dict[str, SweptRun] = {}
    current = planned
    for number, steps in enumerate(rungs):
        here = [look_at(sweep, run, choice, number, steps, failures) for run, choice in current]
        here = [with_value_of(each, found.get(each.run.name)) for each in here]
        found |= {each.run.name: each for each in here}
        if steps is None or not all(each.ended for each in here):
            break
        best = survivors(sweep, here)
        found |= {each.run.name: replace(each, dropped=True) for each in here if each.key not in best}
        current = [(run, choice) for run, choice in current if found[run.name].key in best]
    return list(found.values())


def undecided_runs(
    sweep: Sweep, planned: Iterable[tuple[PlannedRun, dict[str, object]]], failures: Mapping[str, str]
) -> list[SweptRun]:
    """Return runs of asynchronous halving with their status; a choice with a failed run does not continue."""
    decisions = read_decisions(sweep)
    found = [look_until_undecided(sweep, run, choice, failures, decisions) for run, choice in planned]
    failed, last = {each.key for each in found if each.failure is not None}, len(sweep.search.at)
    return [
        replace(each, dropped=True) if each.key in failed and each.status.done and each.rung < last else each
        for each in found
    ]


def runs_of_choice(sweep: Sweep, key: Choice) -> list[SweptRun]:
    """Return the runs of one choice of asynchronous halving with their status."""
    planned = [(run, choice) for run, choice in planned_runs(sweep) if (run.task, run.method, run.label) == key]
    return undecided_runs(sweep, planned, read_failures(sweep.root))


def promoted_runs(sweep: Sweep, runs: Sequence[SweptRun]) -> list[PlannedRun]:
    """Decide on each choice whose runs are all done on their rung; return the next runs of the promoted choices."""
    groups: dict[Choice, list[SweptRun]] = defaultdict(list)
    for each in runs:
        groups[each.key].append(each)
    going_on = set()
    for key, own in groups.items():
        values = [each.value for each in own if each.status.done and each.value is not None]
        undecided = own[0].rung < len(sweep.search.at) and not any(each.dropped for each in own)
        if undecided and len(values) == len(own) and decide(sweep, key, own[0].run.steps, float(np.mean(values))):
            going_on.add(key)
    planned = [(each.whole, each.choice) for each in runs if each.key in going_on]
    return [each.run for each in undecided_runs(sweep, planned, {})] if planned else []


def look_until_undecided(
    sweep: Sweep,
    run: PlannedRun,
    choice: dict[str, object],
    failures: Mapping[str, str],
    decisions: Mapping[tuple[Choice, int], bool],
) -> SweptRun:
    """Return a run with its status on the rung that it has reached by the decisions so far."""
    before = None
    for number, steps in enumerate((*sweep.search.at, None)):
        here = with_value_of(look_at(sweep, run, choice, number, steps, failures), before)
        goes_on = decisions.get((here.key, here.run.steps)) if steps is not None else None
        if not goes_on:
            return replace(here, dropped=goes_on is False)
        before = here
    raise AssertionError("nothing is decided after the last rung")


def look_at(
    sweep: Sweep,
    run: PlannedRun,
    choice: dict[str, object],
    rung: int,
    steps: int | None,
    failures: Mapping[str, str],
) -> SweptRun:
    """Return a run with its status on a rung."""
    whole = run
    if steps is not None:
        run = PlannedRun(run.preset, run.task, run.method, run.seeds, {**run.changes, "steps": steps})
    status = run.status(sweep.root)
    value = None
    if status.done and sweep.search.metric == "score":  # the status has the scores, no file has to be read
        value = sum(status.scores) / len(status.scores) if status.scores else None
    elif status.done:
        value = metric_at(sweep.root / run.name, sweep.search.metric, run.steps)
    if value is not None and not math.isfinite(value):  # such a value cannot be ranked
        value = None
    failure = None if status.done or status.running else failures.get(run.name)
    return SweptRun(run, status, choice, whole, rung, False, failure, value, run.steps)


def with_value_of(each: SweptRun, before: SweptRun | None) -> SweptRun:
    """Return a run; if it has no value on its rung, use the value of the rung before."""
    if before is None or each.value is not None:
        return each
    return replace(each, value=before.value, compared_at=before.compared_at)


def survivors(sweep: Sweep, runs: Sequence[SweptRun]) -> set[Choice]:
    """Return the choices that continue from a rung: the best share for each task and method, by the mean over seeds.

    All runs of the rung have ended, so the result does not depend on their order. A choice does not continue if one of
    its runs failed or lacks the metric.
    """
    values: dict[Choice, list[float | None]] = defaultdict(list)
    for each in runs:
        values[each.key].append(each.value if each.failure is None else None)
    ranked: dict[tuple[str, str], list[tuple[float, Choice]]] = defaultdict(list)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    sign = 1 if sweep.search.goal == "highest" else -1
    for key, found in values.items():
        counts[key[:2]] += 1
        known = [value for value in found if value is not None]
        if len(known) == len(found):
            ranked[key[:2]].append((-sign * sum(known) / len(known), key))
    best = set()
    for group, entries in ranked.items():
        count = math.ceil(sweep.search.keep * counts[group] - 1e-9)
        best |= {key for _, key in sorted(entries, key=lambda entry: entry[0])[:count]}  # ties: the first
    return best
