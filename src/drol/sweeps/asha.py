"""Asynchronous successive halving (ASHA, arXiv:1810.05934): decide on each choice as soon as it reaches a rung.

Decisions depend on the order in which choices reach a rung, so they are logged in the folder of the sweep and read
again when the sweep resumes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from drol.decoding import read_json_lines
from drol.storage import append_whole
from drol.sweeps.sweep import Sweep

DECISIONS = "asha.jsonl"
Choice = tuple[str, str, str]  # task, method and label; the same for all seeds


@dataclass(frozen=True)
class Decision:
    """Whether a setting of the hyperparameters (a choice) continues after `steps` steps."""

    task: str
    method: str
    label: str
    steps: int
    value: float
    goes_on: bool


def decisions_of(sweep: Sweep) -> list[Decision]:
    """Return the decisions of a sweep in the order in which they were made."""
    return read_json_lines(sweep.folder / DECISIONS, Decision)


def read_decisions(sweep: Sweep) -> dict[tuple[Choice, int], bool]:
    """Return whether each choice continued, by choice and steps."""
    return {((each.task, each.method, each.label), each.steps): each.goes_on for each in decisions_of(sweep)}


def is_among_best(value: float, before: Sequence[float], goal: str, keep: float) -> bool:
    """Return whether a choice continues: its value is at least the quantile 1 - keep of the values before it.

    Args:
        value: The metric of the choice.
        before: The metrics of the choices that reached the rung before, dropped ones included.
        goal: "highest" or "lowest": which values are best.
        keep: The share of choices that continue.
    """
    sign, reduction = 1 if goal == "highest" else -1, 1 / keep
    if not before:
        return True
    return sign * value >= np.percentile(sign * np.asarray(before), (1 - 1 / reduction) * 100)


def decide(sweep: Sweep, choice: Choice, steps: int, value: float) -> bool:
    """Return whether a choice continues, and record the decision.

    Args:
        sweep: The sweep.
        choice: Task, method and label.
        steps: The rung.
        value: The metric at the rung, averaged over seeds.
    """
    rung = (*choice[:2], steps)
    before = [each.value for each in decisions_of(sweep) if (each.task, each.method, each.steps) == rung]
    goes_on = bool(is_among_best(value, before, sweep.search.goal, sweep.search.keep))
    append_whole(sweep.folder / DECISIONS, json.dumps(asdict(Decision(*choice, steps, value, goes_on))) + "\n")
    return goes_on
