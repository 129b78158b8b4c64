"""Convert recorded steps to the rows of a `Dataset`.

This module decides how episodes end for imported files, `Dataset.from_arrays` and `EpisodeWriter`. The loaders of the
benchmarks and online experience build their rows themselves, by the rules of their environments.

At a true end the task is over, and its value is not bootstrapped. At a cut (a time limit, the end of a file or a gap)
the value is bootstrapped, so the observation after the cut is needed. If the data have `next_observation`, it holds
this observation. Otherwise the observation of the episode's final step replaces it, and that step is not a transition.

Example: seven steps of a file with observations o0 to o6 and, in the second case, next observations n0 to n6. The task
ended with step 2 (T), a time limit cut the episode after step 4 (L), then the file ended. A star marks a last row: only
its observation is used. The other rows are transitions to the next row.

    step                             0    1    2         3    4         5    6
    mark                                       T              L
    rows without next_observation    o0   o1   o2   o2*  o3   o4*       o5   o6*
    continues                        1    1    0         1              1
    rows with next_observation       o0   o1   o2   n2*  o3   o4   n4*  o5   o6   n6*
    continues                        1    1    0         1    1         1    1
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from drol.data.actions import ActionBox, ActionRange, find_outside
from drol.data.clock import Clock, to_time
from drol.data.import_options import Counts, ReadingOptions, understand_ends
from drol.data.trajectory_rows import ROW_ARRAYS, Arrays, join_rows
from drol.errors import InputError

NO_REWARD = (
    "there is no reward; name it with --reward, compute it with --transform, or pass --fill-reward zero (imitation), "
    "end (1 on the last transition of each episode) or success (1 where --success is true)"
)


@dataclass
class Marks:
    """Masks [steps] that define the rows of each step of a block."""

    ends: np.ndarray  # the step ends a trajectory
    terminal: np.ndarray  # the step ends the task
    left_out: np.ndarray  # the step is dropped


class StepChecker:
    """Converts the fields of steps and checks them.

    Args:
        names: The fields of the blocks, each with its name in the files, for messages.
        reading: How steps are interpreted.
        problems: Collects error messages; None: the first error is raised.
    """

    def __init__(self, names: Mapping[str, str], reading: ReadingOptions, problems: dict[str, str] | None = None):
        self.names, self.reading, self.problems = dict(names), reading, problems
        for name in ("observation", "action"):
            if name not in names:
                raise InputError(f"there is no {name}; name it with --{name}")
        self.clock = Clock(names["time"], reading.split_at_gaps) if "time" in names else None
        if self.clock is None and reading.split_at_gaps is not None:
            raise InputError("--split-at-gaps needs a time; name it with --time")
        self.counts = Counts()
        self.where = "the data"
        self.shapes: dict[str, tuple] = {}
        self.steps_of_files_before = 0
        self.action_range = ActionRange()

    def refuse(self, kind: str, message: str) -> None:
        """Raise `InputError`; if `problems` is given, record the message instead, once for each `kind`."""
        if self.problems is None:
            raise InputError(message)
        self.problems.setdefault(kind, message)

    def convert(self, block: Mapping[str, np.ndarray]) -> Arrays:
        """Convert every field to the shape and type of rows."""
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
        if name == "action" and box is not None:
            self.action_range.add(array)
        numbers = to_numbers(name, own_name, array, box)
        if array.dtype != numbers.dtype and (name != "action" or box is None):
            self.counts.converted.setdefault(name, str(array.dtype))
        return numbers

    def first_step(self, steps: Arrays) -> int:
        """Return the index in the file of the first step in `steps`; the last step in `steps` is the newest step."""
        return self.counts.steps - self.steps_of_files_before - len(steps["action"])

    def look_at_time(self, steps: Arrays, ends: np.ndarray) -> np.ndarray:
        """Return where gaps in time cut episodes; reject times that do not increase."""
        assert self.clock is not None
        cut, fault = self.clock.find_faults(steps["time"], ends, self.first_step(steps))
        self.counts.splits = self.clock.splits
        if fault:
            self.refuse("time", f"{self.where}: {fault}")
        return cut

    def find_nonfinite(self, steps: Arrays, is_transition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of steps with a nonfinite observation, and with other nonfinite values; reject or count them."""
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
        """Reject actions outside the action bounds."""
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

    def check_box(self) -> None:
        """Reject bounds so wide that the actions of the data are indistinguishable after scaling."""
        box, found = self.reading.box, self.action_range
        for number in [] if box is None else found.lost_in(box):
            assert box is not None
            self.refuse(
                "bounds",
                f"{self.where}: the action bounds of dimension {number} are {box.low[number]:g} to "
                f"{box.high[number]:g}, but the data reach from {found.low[number]:g} to {found.high[number]:g}; give "
                "the bounds of the robot with --action-low and --action-high, or pass --scale-actions to take them "
                "from the data",
            )

    def check_held_out(self, held_out: np.ndarray, marks: Marks) -> np.ndarray:
        """Return whether each step is held out; reject an episode that is only partly held out."""
        count = min(len(marks.ends), len(held_out) - 1)
        if (~marks.ends[:count] & (held_out[:count] != held_out[1 : count + 1])).any():
            self.refuse("held out", f"{self.where}: {self.names['held_out']} changes within an episode; it must not")
        return held_out


class Assembler(StepChecker):
    """Converts blocks of consecutive steps to rows: trajectories laid end to end, the input of `Dataset.from_rows`.

    Args:
        names: The fields of the blocks, each with its name in the files, for messages.
        reading: How steps are interpreted.
        problems: Collects error messages; None: the first error is raised.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        reading: ReadingOptions,
        problems: dict[str, str] | None = None,
    ):
        super().__init__(names, reading, problems)
        self.from_success = reading.fill_reward == "success" and "reward" not in names
        if self.from_success and "success" not in names:
            raise InputError("--fill-reward is success, but no column has the success; name the column with --success")
        if "reward" not in names and reading.fill_reward is None:
            raise InputError(NO_REWARD)
        if self.from_success:
            self.names["reward"] = f"1 where {names['success']} is true, else 0"
        self.ends = understand_ends(names, reading)
        self.newest_step: Arrays | None = None  # not converted yet, since the next step is unknown
        self.newest_row: Arrays | None = None  # not returned yet, since the next row is unknown
        self.previous_last = True  # whether the newest row ends a trajectory

    def add(self, block: Mapping[str, np.ndarray], where: str = "the data") -> Arrays:
        """Add the next steps of a file; return the rows that are final."""
        self.where = where
        steps = self.convert(block)
        if not len(steps["action"]):
            return {}
        self.counts.steps += len(steps["action"])
        steps = join_rows(self.newest_step, steps)
        self.newest_step = {name: array[-1:].copy() for name, array in steps.items()}
        return self.make_rows(steps, file_ended=False)

    def end_file(self) -> Arrays:
        """Return the rows that are final after the end of the file; no episode continues in the next file."""
        steps, self.newest_step = self.newest_step, None
        rows = self.make_rows(steps, file_ended=True) if steps is not None else {}
        self.steps_of_files_before = self.counts.steps
        return rows

    def finish(self) -> Arrays:
        """Return the last row of all files."""
        rows, self.newest_row = self.newest_row, None
        if self.counts.steps == 0:
            self.refuse("empty", f"{self.where} holds no step; there is nothing to learn from")
        elif self.counts.terminals + self.counts.cuts == 0:
            self.refuse("empty", f"{self.where} holds {self.counts.steps} steps but not one transition")
        self.check_box()
        return rows or {}

    def make_rows(self, steps: Arrays, file_ended: bool) -> Arrays:
        """Return the rows of `steps`; leave out the newest step, whose successor is unknown, unless the file ended."""
        count = len(steps["action"]) - (not file_ended)
        if count == 0:
            return {}
        ends, terminal = self.find_ends(steps, count, file_ended)
        if self.clock is not None:
            ends = ends | self.look_at_time(steps, ends)
        if self.from_success:
            steps = {**steps, "reward": steps["success"].astype(np.float32)}
        marks = self.leave_out_nonfinite(steps, ends, terminal)
        if "next_observation" in steps:
            self.cut_at_gaps(steps, marks)
        return self.hold_back(self.lay_out(steps, marks))

    def find_ends(self, steps: Arrays, count: int, file_ended: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the first `count` steps end an episode, and which of them end the task."""
        last_of_file = np.zeros(count, bool)
        last_of_file[-1] = file_ended
        marked = last_of_file & (self.reading.file_is_episode or "episode" in steps)
        for name in ("terminal", "timeout", "end"):
            if name in steps:
                marked |= steps[name][:count]
        if "episode" in steps:
            changes = steps["episode"][:-1] != steps["episode"][1:]
            marked[: len(changes)] |= changes
        terminal = steps["terminal"][:count] if self.ends == "flags" else marked & (self.ends == "terminal")
        return marked | last_of_file, terminal

    def leave_out_nonfinite(self, steps: Arrays, ends: np.ndarray, terminal: np.ndarray) -> Marks:
        """Return the marks after nonfinite steps are dropped and their episodes are cut there."""
        count, has_next = len(ends), "next_observation" in steps
        # The action and reward of a step that is not a transition are not used, so they may have any value.
        bad_observation, bad_rest = self.find_nonfinite(steps, is_transition=~ends | terminal | has_next)
        left_out = bad_observation | bad_rest if has_next else bad_observation  # [steps], including the newest
        if not has_next:  # a valid observation with an invalid action is still the next observation of the step before
            ends, terminal = ends | bad_rest[:count], terminal & ~bad_rest[:count]
        before_left_out = np.zeros(count, bool)
        before_left_out[: len(left_out) - 1] = left_out[1:]
        return Marks(ends | before_left_out, terminal, left_out[:count])

    def cut_at_gaps(self, steps: Arrays, marks: Marks) -> None:
        """End trajectories where `next_observation` is not the next step's observation: steps are missing there."""
        inside = np.flatnonzero(~marks.ends)
        after, observation = (steps[name].reshape(len(steps[name]), -1) for name in ("next_observation", "observation"))
        gaps = inside[(after[inside] != observation[inside + 1]).any(-1)]
        marks.ends[gaps] = True
        self.counts.gaps += int((~marks.left_out[gaps]).sum())

    def lay_out(self, steps: Arrays, marks: Marks) -> Arrays:
        """Return a row for each step, and a last row after each transition that ends a trajectory."""
        after = steps.get("next_observation")
        is_final = marks.ends & (marks.terminal | (after is not None))  # a transition that ends a trajectory
        is_last = marks.ends & ~is_final  # a step that is not a transition: its observation ends a trajectory
        rows_of_step = np.where(marks.left_out, 0, 1 + is_final)
        step = np.repeat(np.arange(len(marks.ends)), rows_of_step)  # [rows], the step of each row
        added = np.zeros(len(step), bool)  # [rows], the last rows added after final transitions
        added[np.cumsum(rows_of_step)[is_final & ~marks.left_out] - 1] = True
        observation = steps["observation"][step]
        if after is not None:
            observation[added] = after[step[added]]
        action, last = steps["action"][step], added | is_last[step]
        self.check_actions(action[~last])
        self.counts.without_next += int((is_last & ~marks.left_out).sum())
        held_out = {"held_out": self.check_held_out(steps["held_out"], marks)[step]} if "held_out" in steps else {}
        return {
            "observation": observation,
            "action": action,
            "reward": steps["reward"][step] if "reward" in steps else np.zeros(len(step), np.float32),
            "continues": np.where(last | marks.terminal[step], 0, 1).astype(np.float32),
            "last": last,
            **held_out,
        }

    def hold_back(self, rows: Arrays) -> Arrays:
        """Return the rows whose successor is known; drop trajectories without a transition; keep the newest row."""
        last = rows["last"]
        empty = last & np.concatenate(([self.previous_last], last[:-1]))
        self.counts.too_short += int(empty.sum())
        if len(last):
            self.previous_last = bool(last[-1])
        rows = join_rows(self.newest_row, {name: array[~empty] for name, array in rows.items()})
        last_transition = np.flatnonzero(rows["last"][1:])
        if self.reading.fill_reward == "end" and "reward" not in self.names:
            rows["reward"][last_transition] = 1
        ended = rows["continues"][last_transition] == 0
        self.counts.terminals += int(ended.sum())
        self.counts.cuts += int((~ended).sum())
        self.newest_row = {name: array[-1:].copy() for name, array in rows.items()}
        return {name: array[:-1] for name, array in rows.items()}


def assemble(arrays: Mapping[str, np.ndarray], reading: ReadingOptions) -> tuple[Arrays, Counts]:
    """Convert steps in memory to rows; return the rows and the counts."""
    assembler = Assembler({name: name for name in arrays}, reading)
    parts = [assembler.add(arrays), assembler.end_file(), assembler.finish()]
    parts = [part for part in parts if part]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in ROW_ARRAYS}
    return rows, assembler.counts


def to_flag(name: str, array: np.ndarray) -> np.ndarray:
    """Return a flag such as `terminal` as booleans [steps]."""
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
    """Convert observations, actions or rewards to float32; leave images as bytes.

    Args:
        field: One of `FIELDS`.
        name: Its name in the file, for messages.
        array: Its values.
        box: The action bounds, if actions are scaled.
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
