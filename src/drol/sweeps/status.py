"""The status of a sweep: finished, running and failed runs, the time left, and the best choices."""

import functools
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from drol.errors import counted
from drol.jobs.job import Timing, read_timings
from drol.planning.execute_runs import logged_step
from drol.progress import duration
from drol.results.collect import collect_results
from drol.results.comparison_tables import Table, interval_words, text_of
from drol.results.result import Results
from drol.results.statistical_tests import Interval
from drol.results.verdicts import score_interval
from drol.runs.directory import EVALUATIONS, RunDirectory
from drol.sweeps.asha import Choice
from drol.sweeps.execute import is_running
from drol.sweeps.objective import metric_curve, pooled_counts, success_counts
from drol.sweeps.sweep import RUNGS, Sweep
from drol.sweeps.sweep_runs import SweptRun, swept_runs

SHOWN = 10  # lines per list in the terminal; the page and the results file are complete


@dataclass(frozen=True)
class ChoiceStatus:
    """The runs of one choice of parameters on a task."""

    key: Choice
    words: str
    seeds: int  # number of seeds with results
    steps: int  # after which the runs are compared
    values: tuple[float, ...]  # the metric of each run with results
    dropped: bool
    metric: str
    folders: tuple[Path, ...]  # of the runs

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @functools.cached_property
    def interval(self) -> Interval | None:
        """The interval of the mean over seeds, by `score_interval` as in all tables."""
        curves = [metric_curve(folder, self.metric).get(self.steps, {}) for folder in self.folders]
        counts = [success_counts(folder, self.metric).get(self.steps) for folder in self.folders]
        return score_interval([value for own in curves for value in own.values()], pooled_counts(counts))


@dataclass(frozen=True)
class SweepStatus:
    """The current status of a sweep.

    Attributes:
        sweep: The sweep.
        runs: Its runs.
        running: Whether a process runs the sweep.
        seconds_left: The estimated seconds left of each running run, by name; a run without an estimate is absent.
        steps: The current step of each running run, by name.
    """

    sweep: Sweep
    runs: Sequence[SweptRun]
    running: bool
    seconds_left: Mapping[str, float]
    steps: Mapping[str, int]

    def those(self, kind: str) -> list[SweptRun]:
        """Return the runs that are "done", "dropped", "running", "failed" or "waiting"."""
        return [each for each in self.runs if kind_of(each) == kind]

    def best(self) -> list[ChoiceStatus]:
        """Return the choices with results, sorted by task, then by steps (most first), then by the metric."""
        groups: dict[tuple[Choice, int], list[SweptRun]] = defaultdict(list)
        for each in self.runs:
            if each.value is not None:
                groups[each.key, each.compared_at].append(each)
        found = [
            ChoiceStatus(
                key,
                own[0].words,
                sum(len(each.run.seeds) for each in own),
                steps,
                tuple(each.value for each in own if each.value is not None),
                own[0].dropped,
                self.sweep.search.metric,
                tuple(self.sweep.root / each.run.name for each in own),
            )
            for (key, steps), own in groups.items()
        ]
        sign = -1 if self.sweep.search.goal == "highest" else 1
        return sorted(found, key=lambda each: (each.key[0], -each.steps, sign * each.mean))


def kind_of(each: SweptRun) -> str:
    if each.failure is not None:
        return "failed"
    if each.dropped:
        return "dropped"
    return "done" if each.status.done else "running" if each.status.running else "waiting"


def sweep_status(sweep: Sweep) -> SweepStatus:
    """Return the status of a sweep (read-only).

    Args:
        sweep: The sweep, from `read_sweep`.
    """
    runs = swept_runs(sweep)
    under_way = [each for each in runs if kind_of(each) == "running"]
    timings = read_timings(sweep.root) if under_way else []
    steps = {each.run.name: max(each.status.step, logged_step(each.run, sweep.root)) for each in under_way}
    left = {each.run.name: time_left(sweep.root, each, steps[each.run.name], timings) for each in under_way}
    known = {name: seconds for name, seconds in left.items() if seconds is not None}
    return SweepStatus(sweep, runs, is_running(sweep), known, steps)


def time_left(root: Path, each: SweptRun, step: int, timings: Iterable[Timing]) -> float | None:
    """Estimate the seconds left of a run from finished runs of the same task and method.

    Without such runs, the estimate is made from the times at which the run saved its policies. Without these, it is
    None.
    """
    like = (each.run.task, each.run.method)
    own = [timing for timing in timings if (timing.task, timing.method) == like and not timing.failed]
    if own:
        return (each.run.steps - step) * statistics.median(timing.seconds / timing.updates for timing in own)
    seconds = RunDirectory(root / each.run.name).seconds_per_update()
    return None if seconds is None else (each.run.steps - step) * seconds


def forecast(status: SweepStatus) -> str:
    """Return one line for the start of a sweep: its runs, the updates to do, and how long they may take."""
    sweep = status.sweep
    todo = [each for each in status.runs if not each.ended and not each.dropped]
    whole = [(each, len(each.run.seeds) * max(0, each.whole.steps - each.status.step)) for each in todo]
    updates = sum(count for _, count in whole)
    most = "at most " if sweep.search.kind in RUNGS or sweep.budget.updates or sweep.budget.core_hours else ""
    timings = read_timings(sweep.root)
    seconds = [time_left(sweep.root, replace(each, run=each.whole), each.status.step, timings) for each, _ in whole]
    known = [each for each in seconds if each is not None]
    if not todo:
        time = "nothing is left to do"
    elif len(known) < len(todo):
        time = "the time is known once a run of each task and method has ended"
    else:
        time = f"about {duration(sum(known))} if they run one after another"
    return f"{sweep.name}: {counted(len(status.runs), 'run')}, {len(todo)} to do; {most}{updates:,} updates; {time}"


def sweep_results(sweep: Sweep) -> Results:
    """Return the results of a sweep's runs, in the form of `drol.collect_results`.

    Args:
        sweep: The sweep, from `read_sweep`.
    """
    folders = [sweep.root / each.run.name for each in swept_runs(sweep)]
    return collect_results([folder for folder in folders if (folder / EVALUATIONS).is_file()])


def best_table(status: SweepStatus, most: int | None = None) -> Table:
    """Return a table with a line for each choice with results, in the order of `SweepStatus.best`."""
    titles = ("task", "choice", "seeds", "updates", status.sweep.search.metric, "95% interval", "")
    lines = [
        (
            each.key[0],
            each.words,
            str(each.seeds),
            f"{each.steps:,}",
            f"{each.mean:.4g}",
            interval_words(each.interval, ".4g"),
            "dropped" if each.dropped else "",
        )
        for each in status.best()[:most]
    ]
    return titles, lines


def summary_of(status: SweepStatus) -> str:
    """Return one line with the numbers of done, running, failed, dropped and waiting runs."""
    counts = [(len(status.those(kind)), kind) for kind in ("running", "failed", "dropped", "waiting")]
    done = f"{len(status.those('done'))} of {len(status.runs)} runs done"
    return ", ".join([done, *(f"{count} {kind}" for count, kind in counts if count)])


def text_status(status: SweepStatus) -> str:
    """Return the status as text for the terminal."""
    sweep, parts = status.sweep, []
    state = "" if status.running else ", no process executes it" if status.those("waiting") else ""
    parts.append(f"{sweep.name}: {summary_of(status)}{state}")
    running = [
        f"  {each.run.name}: {status.steps[each.run.name]:,} of {each.run.steps:,}"
        + (f", {duration(status.seconds_left[each.run.name])} left" if each.run.name in status.seconds_left else "")
        for each in status.those("running")
    ]
    failed = [f"  {each.run.name}: {each.failure}" for each in status.those("failed")]
    for title, lines in (("running", running), ("failed; `drol sweep retry` tries them again", failed)):
        if lines:
            more = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
            parts.append("\n".join([title, *lines[:SHOWN], *more]))
    if any(each.value is not None for each in status.runs):
        count = len({each.key for each in status.runs if each.value is not None})
        more = f"\nand {count - SHOWN} more; `drol sweep results` has all" if count > SHOWN else ""
        parts.append(f"best so far\n{text_of(best_table(status, SHOWN))}{more}")
    return "\n\n".join(parts)
