"""Steps of files, checked and turned into the shapes and types that rows have."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from drol.data.actions import ActionBox, find_outside
from drol.data.files.options import Counts, ReadingOptions
from drol.data.files.rules.clock import Clock, to_time
from drol.data.rows import Arrays
from drol.errors import InputError


@dataclass
class Marks:
    """The fate of each step of a block, as masks [steps]."""

    ends: np.ndarray  # a trajectory ends with the step
    terminal: np.ndarray  # it ends because the task did; true only where `ends` is
    left_out: np.ndarray  # the step gives no row
    reached: np.ndarray | None = None  # the goal is reached before the step, so nothing beyond it counts


class StepChecker:
    """Converts the fields of steps and refuses what is wrong with them.

    Args:
        names: The fields that blocks have, each with its name in the files, for messages.
        reading: How steps are to be understood.
        problems: Collects the messages of everything that would be refused; None: the first problem is raised.
    """

    def __init__(self, names: Mapping[str, str], reading: ReadingOptions, problems: dict[str, str] | None = None):
        self.names, self.reading, self.problems = dict(names), reading, problems
        for name in ("observation", "action"):
            if name not in names:
                raise InputError(f"there is no {name}; name it with --{name}")
        if reading.fill and "next_observation" in names:
            raise InputError("--fill is for steps without next observations of their own; use --drop-nonfinite")
        self.clock = Clock(names["time"], reading.split_at_gaps) if "time" in names else None
        if self.clock is None and (reading.split_at_gaps is not None or reading.sort_by_time):
            raise InputError("--sort-by-time and --split-at-gaps need a time; name it with --time")
        self.counts = Counts()
        self.where = "the data"
        self.shapes: dict[str, tuple] = {}
        self.steps_of_files_before = 0

    def refuse(self, kind: str, message: str) -> None:
        """Raise a problem, or note the first of its kind."""
        if self.problems is None:
            raise InputError(message)
        self.problems.setdefault(kind, message)

    def convert(self, block: Mapping[str, np.ndarray]) -> Arrays:
        """Return every field with the shape and type that rows have."""
        sizes = {name: len(array) for name, array in block.items()}
        if len(set(sizes.values())) != 1:
            found = ", ".join(f"{self.names[name]} {size}" for name, size in sizes.items())
            raise InputError(f"{self.where}: the arrays have different numbers of steps ({found}); they must be equal")
        steps = {}
        for name, values in block.items():
            try:
                steps[name] = self.convert_field(name, np.asarray(values))
            except InputError as error:
                raise InputError(f"{self.where}: {error}") from error
            shape = steps[name].shape[1:]
            expected = self.shapes.setdefault("observation" if name == "next_observation" else name, shape)
            if shape != expected:
                raise InputError(
                    f"{self.where}: {self.names[name]} has steps of shape {list(shape)}; "
                    f"{list(expected)} was found before"
                )
        return steps

    def convert_field(self, name: str, array: np.ndarray) -> np.ndarray:
        own_name, box = self.names[name], self.reading.box
        if name in ("terminal", "timeout", "end", "held_out", "success"):
            return to_flag(own_name, array)
        if name == "episode":
            return to_column(own_name, array)
        if name == "time":
            return to_time(own_name, to_column(own_name, array))
        if name == "formula":
            return array
        numbers = to_numbers(name, own_name, array, box)
        if array.dtype != numbers.dtype and (name != "action" or box is None):
            self.counts.converted.setdefault(name, str(array.dtype))
        return numbers

    def first_step(self, steps: Arrays) -> int:
        """Return the number in its file of the first of some steps that end with the newest."""
        return self.counts.steps - self.steps_of_files_before - len(steps["action"])

    def look_at_time(self, steps: Arrays, ends: np.ndarray) -> np.ndarray:
        """Return where gaps in time cut episodes; refuse time that does not go on."""
        assert self.clock is not None
        cut, fault = self.clock.find_faults(steps["time"], ends, self.first_step(steps))
        self.counts.splits = self.clock.splits
        if fault:
            self.refuse("time", f"{self.where}: {fault}")
        return cut

    def find_nonfinite(self, steps: Arrays, is_transition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which steps have an observation, and which have anything else, that is not finite; refuse or count."""
        count, total = len(is_transition), len(steps["action"])
        bad_observation, bad_rest = np.zeros(total, bool), np.zeros(total, bool)
        for name in ("observation", "next_observation", "action", "reward"):
            if name not in steps or steps[name].dtype == np.uint8:
                continue
            wrong = ~np.isfinite(steps[name].reshape(total, -1))
            if name in ("action", "reward"):
                wrong[:count] &= is_transition[:, None]
            number = int(wrong[:count].sum())
            if number:
                first = self.first_step(steps) + int(np.flatnonzero(wrong.any(-1))[0])
                self.counts.not_finite[name] = self.counts.not_finite.get(name, 0) + number
                if not self.reading.drop_nonfinite:
                    self.refuse(
                        f"not finite {name}",
                        f"{self.where}: {self.names[name]} has values that are NaN, infinite or too large for float32, "
                        f"the first in step {first:,}; fix them, or pass --drop-nonfinite to leave such steps "
                        "out and cut the episode there",
                    )
            bad = bad_observation if name == "observation" else bad_rest
            bad |= wrong.any(-1)
        self.counts.dropped += int((bad_observation | bad_rest)[:count].sum())
        return bad_observation, bad_rest

    def check_actions(self, action: np.ndarray) -> None:
        """Refuse actions outside the box."""
        outside = find_outside(action)
        if not outside.any():
            return
        row, dimension = np.argwhere(outside)[0]
        value = action[row, dimension]
        if self.reading.box is not None:
            low, high = self.reading.box.low[dimension], self.reading.box.high[dimension]
            value = (action[row] * self.reading.box.unit + self.reading.box.centre)[dimension]
            allowed = f"outside the box [{low:g}, {high:g}] that was given; give the box of the robot or environment"
        else:
            allowed = (
                "outside [-1, 1]; give the box that the actions live in with --action-low and --action-high, "
                "or pass --scale-actions to take it from the data"
            )
        self.refuse(
            "box", f"{self.where}: {self.names['action']} reaches {value:.6g} in dimension {dimension}, {allowed}"
        )

    def check_held_out(self, held_out: np.ndarray, marks: Marks) -> np.ndarray:
        """Return whether each step is held out; refuse an episode that is so in part."""
        count = min(len(marks.ends), len(held_out) - 1)
        if (~marks.ends[:count] & (held_out[:count] != held_out[1 : count + 1])).any():
            self.refuse("held out", f"{self.where}: {self.names['held_out']} changes within an episode; it must not")
        return held_out


def to_flag(name: str, array: np.ndarray) -> np.ndarray:
    """Return a mark of ends as booleans [steps]."""
    array = to_column(name, array)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{name} is {array.dtype} with values such as "
            f"{next((value for value in array.tolist() if value not in (0, 1)), array[0])!r}; "
            "it must be true or false, 1 or 0"
        )
    return array.astype(bool)


def to_column(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array [steps] or [steps, 1] as [steps]."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} has shape {list(array.shape)}; it must be one number for each step")
    return array


def to_numbers(field: str, name: str, array: np.ndarray, box: ActionBox | None) -> np.ndarray:
    """Return observations, actions or rewards as float32, images as the bytes that they are.

    Args:
        field: One of `FIELDS`.
        name: Its name in the file, for messages.
        array: Its values.
        box: The box that actions are scaled from, if they are.
    """
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is {array.dtype}; it must hold plain numbers")
    if field == "action" and array.dtype.kind != "f" and box is None:
        raise InputError(
            f"{name} is {array.dtype}; actions must be continuous (floats in [-1, 1]); "
            "for whole numbers on a scale give the scale with --action-low and --action-high"
        )
    if field == "reward":
        array = to_column(name, array)
    elif array.ndim == 1:
        array = array[:, None]
    if field == "action" and array.ndim != 2:
        raise InputError(f"{name} has shape {list(array.shape)}; it must be [steps, action size]")
    if array.size == 0 and len(array):
        raise InputError(f"{name} has shape {list(array.shape)}; a step must have a number")
    if field in ("observation", "next_observation") and array.ndim > 2:
        if array.ndim != 4 or array.dtype != np.uint8:
            raise InputError(
                f"{name} is {array.dtype} of shape {list(array.shape)}; it must be vectors "
                "[steps, size] or images of bytes [steps, height, width, channels]"
            )
        return array
    if field == "action" and box is not None:
        if array.shape[1] != len(box.low):
            raise InputError(f"{name} has {array.shape[1]} dimensions; the action box has {len(box.low)}")
        array = box.to_unit(array)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float32)
