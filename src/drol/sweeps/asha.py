"""Asynchronous successive halving (ASHA): Ray Tune's scheduler decides on each choice as soon as it has got so far.

The order in which choices get there decides too, so every decision is written down in the folder of the sweep; one that
was begun again asks a scheduler that has seen the same.
"""

import json
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

from drol.errors import InputError
from drol.storage import append_whole
from drol.sweeps.sweep import Sweep

DECISIONS = "asha.jsonl"
Choice = tuple[str, str, str]  # task, method and label: what runs of different seeds share


@dataclass(frozen=True)
class Decision:
    """Whether a choice went on after some steps."""

    task: str
    method: str
    label: str
    steps: int
    value: float
    goes_on: bool


def decisions_of(sweep: Sweep) -> list[Decision]:
    """Return what was decided in a sweep, in the order in which it was."""
    path = sweep.folder / DECISIONS
    try:
        return [Decision(**json.loads(line)) for line in path.read_text().splitlines()] if path.is_file() else []
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} has a line that is no decision ({error}); remove that line") from error


def read_decisions(sweep: Sweep) -> dict[tuple[Choice, int], bool]:
    """Return what was decided, by choice and steps."""
    return {((each.task, each.method, each.label), each.steps): each.goes_on for each in decisions_of(sweep)}


def check_asha() -> None:
    """Refuse asynchronous halving where Ray Tune is not installed."""
    make_scheduler("highest", 0.5)


def make_scheduler(goal: str, keep: float) -> Any:
    """Return Tune's scheduler for one rung: it knows the choices that reached it, and nothing of time."""
    try:
        from ray.tune.schedulers import AsyncHyperBandScheduler
    except ImportError as error:
        raise InputError("search.kind = 'asha' needs Ray Tune; install it with: pip install 'drol[ray]'") from error
    mode = "max" if goal == "highest" else "min"
    return AsyncHyperBandScheduler("rung", "value", mode, max_t=2, grace_period=1, reduction_factor=1 / keep)


def decide(sweep: Sweep, choice: Choice, steps: int, value: float) -> bool:
    """Return whether a choice goes on, and write it down.

    Args:
        sweep: The sweep.
        choice: Task, method and label.
        steps: The rung.
        value: The metric there, the mean over seeds.
    """
    scheduler = make_scheduler(sweep.search.goal, sweep.search.keep)

    def ask(label: str, value: float) -> bool:
        trial = SimpleNamespace(trial_id=label)
        scheduler.on_trial_add(None, trial)
        return scheduler.on_trial_result(None, trial, {"rung": 1, "value": value}) == scheduler.CONTINUE

    for each in decisions_of(sweep):
        if (each.task, each.method, each.steps) == (*choice[:2], steps):
            ask(each.label, each.value)
    goes_on = ask(choice[2], value)
    append_whole(sweep.folder / DECISIONS, json.dumps(asdict(Decision(*choice, steps, value, goes_on))) + "\n")
    return goes_on
