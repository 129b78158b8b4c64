"""How far a sweep is: what is done, what runs and for how long, what failed and why, what is best."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drol.experiments.compare.statistics import Interval, bootstrap_mean_interval
from drol.experiments.compare.tables import Table, interval_words, text_of
from drol.experiments.results.collect import collect_results
from drol.experiments.results.result import Results
from drol.paper.execute_runs import logged_step
from drol.progress import duration
from drol.queue.jobs import Timing, read_timings
from drol.runs.directory import EVALUATIONS, RunDirectory
from drol.sweeps.asha import Choice
from drol.sweeps.execute import is_running
from drol.sweeps.runs import SweptRun, swept_runs
from drol.sweeps.sweep import Sweep

SHOWN = 10  # lines of what runs and of what is best; a page and a file of results have all


@dataclass(frozen=True)
class ChoiceStatus:
    """The runs of one choice of parameters on a task."""

    key: Choice
    words: str
    seeds: int  # that are done
    steps: int  # after which they are compared
    values: tuple[float, ...]  # of the metric, for each run that is done
    dropped: bool

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def interval(self) -> Interval | None:
        """The bootstrap interval of the mean over runs; None for one."""
        return bootstrap_mean_interval(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class SweepStatus:
    """A sweep as it is now.

    Attributes:
        sweep: The sweep.
        runs: Its runs.
        running: Whether a process runs it.
        seconds_left: How long each run that is under way still takes, by its name; absent where nobody can tell.
        steps: How far it is, by its name.
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
        """Return the choices with results: those that trained longest first, of these the best."""
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
    return "done" if each.state.done else "running" if each.state.running else "waiting"


def sweep_status(sweep: Sweep) -> SweepStatus:
    """Return how far a sweep is. To look changes nothing.

    Args:
        sweep: What `read_sweep` returned.
    """
    runs = swept_runs(sweep)
    under_way = [each for each in runs if kind_of(each) == "running"]
    timings = read_timings(sweep.root) if under_way else []
    steps = {each.run.name: max(each.state.step, logged_step(each.run, sweep.root)) for each in under_way}
    left = {each.run.name: time_left(sweep.root, each, steps[each.run.name], timings) for each in under_way}
    known = {name: seconds for name, seconds in left.items() if seconds is not None}
    return SweepStatus(sweep, runs, is_running(sweep), known, steps)


def time_left(root: Path, each: SweptRun, step: int, timings: Iterable[Timing]) -> float | None:
    """Return the seconds that a run still takes, by runs like it that ended; else by when it saved its policies."""
    like = (each.run.task, each.run.method)
    own = [timing for timing in timings if (timing.task, timing.method) == like and not timing.failed]
    if own:
        return (each.run.steps - step) * statistics.median(timing.seconds / timing.updates for timing in own)
    seconds = RunDirectory(root / each.run.name).seconds_per_update()
    return None if seconds is None else (each.run.steps - step) * seconds


def sweep_results(sweep: Sweep) -> Results:
    """Return the results of a sweep's runs, as `drol.collect_results` gives them.

    Args:
        sweep: What `read_sweep` returned.
    """
    folders = [sweep.root / each.run.name for each in swept_runs(sweep)]
    return collect_results([folder for folder in folders if (folder / EVALUATIONS).is_file()])


def best_table(status: SweepStatus, most: int | None = None) -> Table:
    """Return a line for each choice that has results, the best ones first."""
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
    """Return one line: how many runs are done, run, failed, wait."""
    counts = [(len(status.those(kind)), kind) for kind in ("running", "failed", "dropped", "waiting")]
    done = f"{len(status.those('done'))} of {len(status.runs)} runs done"
    return ", ".join([done, *(f"{count} {kind}" for count, kind in counts if count)])


def text_status(status: SweepStatus) -> str:
    """Return the status as the terminal shows it."""
    sweep, parts = status.sweep, []
    state = "" if status.running else ", nobody works on it" if status.those("waiting") else ""
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
