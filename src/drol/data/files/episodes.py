"""Steps as files hold them, turned into the rows of a `Dataset`: how episodes end is decided here and nowhere else.

Where a task ended nothing follows, and the value beyond it is not bootstrapped; where a time limit, the end of a file
or a gap cut an episode, it is. A cut needs the observation after it: from `next_observation` if there is one, else
the observation of the episode's final step takes its place and that step is no transition of its own.
"""

from collections.abc import Mapping

import numpy as np

from drol.data.files.options import Counts, Reading, understand_ends
from drol.errors import InputError

Arrays = dict[str, np.ndarray]
ROW_ARRAYS = ("observation", "action", "reward", "continues", "last")


class Assembler:
    """Takes blocks of consecutive steps, gives rows: trajectories laid end to end, as `Dataset.from_rows` takes them.

    `problems` collects what would be refused, where a report is wanted; without it the first problem is raised.
    """

    def __init__(self, names: Mapping[str, str], reading: Reading, problems: dict[str, str] | None = None):
        self.names, self.reading, self.problems = dict(names), reading, problems
        for name in ("observation", "action"):
            if name not in names:
                raise InputError(f"there is no {name}; name it with --{name}")
        if "reward" not in names and reading.fill_reward is None:
            raise InputError(
                "there is no reward; name it with --reward, or pass --fill-reward zero (imitation) or "
                "--fill-reward end (1 on the last transition of each episode)"
            )
        self.ends = understand_ends(names, reading)
        self.counts = Counts()
        self.where = "the data"
        self.carry: Arrays | None = None  # the newest step, whose successor is not known yet
        self.held: Arrays | None = None  # the newest row, whose successor is not known yet
        self.previous_last = True  # whether the row before the next one ends a trajectory
        self.shapes: dict[str, tuple] = {}
        self.steps_of_files_before = 0

    def add(self, block: Mapping[str, np.ndarray], where: str = "the data") -> Arrays:
        """Rows from the next steps; what depends on the step after them is given later."""
        self.where = where
        steps = self.standard(block)
        if not len(steps["action"]):
            return {}
        self.counts.steps += len(steps["action"])
        steps = joined(self.carry, steps)
        self.carry = {name: array[-1:].copy() for name, array in steps.items()}
        return self.rows(steps, file_ended=False)

    def end_file(self) -> Arrays:
        """The rows that waited; no episode goes on in the next file."""
        steps, self.carry = self.carry, None
        rows = self.rows(steps, file_ended=True) if steps is not None else {}
        self.steps_of_files_before = self.counts.steps
        return rows

    def finish(self) -> Arrays:
        """The last row of all."""
        rows, self.held = self.held, None
        if self.counts.steps == 0:
            self.refuse("empty", f"{self.where} holds no step; there is nothing to learn from")
        elif self.counts.terminals + self.counts.cuts == 0:
            self.refuse("empty", f"{self.where} holds {self.counts.steps} steps but not one transition")
        return rows or {}

    def refuse(self, kind: str, message: str) -> None:
        if self.problems is None:
            raise InputError(message)
        self.problems.setdefault(kind, message)

    def standard(self, block: Mapping[str, np.ndarray]) -> Arrays:
        """Every field with the shape and type that rows have."""
        sizes = {name: len(array) for name, array in block.items()}
        if len(set(sizes.values())) != 1:
            found = ", ".join(f"{self.names[name]} {size}" for name, size in sizes.items())
            raise InputError(f"{self.where}: the arrays have different numbers of steps ({found}); they must be equal")
        steps = {}
        for name, array in block.items():
            if name in ("terminal", "timeout", "end"):
                steps[name] = self.flag(name, np.asarray(array))
            elif name == "episode":
                steps[name] = self.one_number(name, np.asarray(array))
            else:
                steps[name] = self.floats(name, np.asarray(array))
            shape = steps[name].shape[1:]
            expected = self.shapes.setdefault("observation" if name == "next_observation" else name, shape)
            if shape != expected:
                raise InputError(
                    f"{self.where}: {self.names[name]} has steps of shape {list(shape)}; "
                    f"{list(expected)} was found before"
                )
        return steps

    def one_number(self, name: str, array: np.ndarray) -> np.ndarray:
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(
                f"{self.where}: {self.names[name]} has shape {list(array.shape)}; it must be one number for each step"
            )
        return array

    def flag(self, name: str, array: np.ndarray) -> np.ndarray:
        array = self.one_number(name, array)
        if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            raise InputError(
                f"{self.where}: {self.names[name]} is {array.dtype} with values such as "
                f"{next((value for value in array.tolist() if value not in (0, 1)), array[0])!r}; "
                "it must be true or false, 1 or 0"
            )
        return array.astype(bool)

    def floats(self, name: str, array: np.ndarray) -> np.ndarray:
        own_name = self.names[name]
        if array.dtype.kind not in "biuf":
            raise InputError(f"{self.where}: {own_name} is {array.dtype}; it must hold plain numbers")
        if name == "action" and array.dtype.kind != "f" and self.reading.box is None:
            raise InputError(
                f"{self.where}: {own_name} is {array.dtype}; actions must be continuous (floats in [-1, 1]); "
                "for whole numbers on a scale give the scale with --action-low and --action-high"
            )
        if name == "reward":
            array = self.one_number(name, array)
        elif array.ndim == 1:
            array = array[:, None]
        if name == "action" and array.ndim != 2:
            raise InputError(f"{self.where}: {own_name} has shape {list(array.shape)}; it must be [steps, action size]")
        if array.size == 0 and len(array):
            raise InputError(f"{self.where}: {own_name} has shape {list(array.shape)}; a step must have a number")
        if name in ("observation", "next_observation") and array.ndim > 2:
            if array.ndim != 4 or array.dtype != np.uint8:
                raise InputError(
                    f"{self.where}: {own_name} is {array.dtype} of shape {list(array.shape)}; it must be vectors "
                    "[steps, size] or images of bytes [steps, height, width, channels]"
                )
            return array  # images stay bytes
        if name == "action" and self.reading.box is not None:
            if array.shape[1] != len(self.reading.box.low):
                raise InputError(
                    f"{self.where}: {own_name} has {array.shape[1]} dimensions; the action box has "
                    f"{len(self.reading.box.low)}"
                )
            array = self.reading.box.to_unit(array)
        elif array.dtype != np.float32:
            self.counts.converted.setdefault(name, str(array.dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(np.float32)

    def rows(self, steps: Arrays, file_ended: bool) -> Arrays:
        """Rows of all steps but the newest, or of the newest when the file ended."""
        count = len(steps["action"]) - (not file_ended)
        if count == 0:
            return {}
        follows = np.arange(1, count + 1)  # the step after each
        last_of_file = file_ended & (np.arange(count) == count - 1)

        flagged = self.reading.file_is_episode & last_of_file
        for name in ("terminal", "timeout", "end"):
            if name in steps:
                flagged = flagged | steps[name][:count]
        if "episode" in steps:
            episode = steps["episode"]
            flagged = flagged | last_of_file
            flagged[: len(episode) - 1] |= episode[:-1][:count] != episode[1:][:count]
        terminal = steps["terminal"][:count] if self.ends == "flags" else flagged & (self.ends == "terminal")
        boundary = flagged | last_of_file

        observation = steps["observation"]
        after = steps.get("next_observation")
        bad = self.not_finite(steps, count, needed=~boundary | terminal | (after is not None))
        gone = bad["observation"] if after is None else bad["observation"] | bad["other"]
        if after is None:  # the observation is still the end of what came before
            boundary, terminal = boundary | bad["other"], terminal & ~bad["other"]
        before_gone = np.zeros(count, bool)
        before_gone[: len(bad["observation"]) - 1] = gone[1 : count + 1]
        boundary = boundary | before_gone
        gone = gone[:count]
        if after is not None:
            inside = np.flatnonzero(~boundary)
            flat_after, flat = (array.reshape(len(array), -1) for array in (after, observation))
            gap = inside[(flat_after[inside] != flat[follows[inside]]).any(-1)]
            boundary[gap] = True
            self.counts.gaps += int((~gone[gap]).sum())

        adds = boundary & (terminal | (after is not None))  # these steps are transitions and need a row after them
        is_last = boundary & ~adds
        repeat = np.where(gone, 0, 1 + adds)
        source = np.repeat(np.arange(count), repeat)
        extra = np.zeros(len(source), bool)
        extra[np.cumsum(repeat)[adds & ~gone] - 1] = True
        found = observation[source]
        if after is not None:
            found[extra] = after[source[extra]]
        action = steps["action"][source]
        last = extra | is_last[source]
        ended = terminal[source] & boundary[source]
        self.check_box(action[~last])
        rows = {
            "observation": found,
            "action": action,
            "reward": steps["reward"][source] if "reward" in steps else np.zeros(len(source), np.float32),
            "continues": np.where(last | ended, 0, 1).astype(np.float32),
            "last": last,
        }
        self.counts.without_next += int((is_last & ~gone).sum())
        return self.hand_over(rows)

    def not_finite(self, steps: Arrays, count: int, needed: np.ndarray) -> dict[str, np.ndarray]:
        """Which steps have an observation, or something else that is needed, that is not finite."""
        bad = {}
        for name in ("observation", "next_observation", "action", "reward"):
            if name not in steps or steps[name].dtype == np.uint8:
                continue
            wrong = ~np.isfinite(steps[name].reshape(len(steps[name]), -1))
            if name in ("action", "reward"):
                wrong[:count] &= needed[:, None]
            number = int(wrong[:count].sum())
            if number:
                first = self.counts.steps - self.steps_of_files_before - len(steps["action"])
                first += int(np.flatnonzero(wrong.any(-1))[0])
                self.counts.not_finite[name] = self.counts.not_finite.get(name, 0) + number
                if not self.reading.drop_nonfinite:
                    self.refuse(
                        f"not finite {name}",
                        f"{self.where}: {self.names[name]} has values that are NaN, infinite or too large for float32, "
                        f"the first in step {first:,}; mend them, or pass --drop-nonfinite to leave such steps "
                        "out and cut the episode there",
                    )
            bad[name] = wrong.any(-1)
        nothing = np.zeros(len(steps["action"]), bool)
        other = bad["action"] | bad.get("reward", nothing) | bad.get("next_observation", nothing)
        seen = bad.get("observation", nothing)
        self.counts.dropped += int((seen | other)[:count].sum())
        return {"observation": seen, "other": other if "next_observation" in steps else other[:count]}

    def check_box(self, action: np.ndarray) -> None:
        outside = np.abs(action) > 1 + 1e-6
        if not outside.any():
            return
        row, dimension = np.argwhere(outside)[0]
        value = action[row, dimension]
        if self.reading.box is not None:
            low, high = self.reading.box.low[dimension], self.reading.box.high[dimension]
            value = self.reading.box.from_unit(action[row])[dimension]
            allowed = f"outside the box [{low:g}, {high:g}] that was given; give the box of the robot or environment"
        else:
            allowed = (
                "outside [-1, 1]; give the box that the actions live in with --action-low and --action-high, "
                "or pass --scale-actions to take it from the data"
            )
        self.refuse(
            "box", f"{self.where}: {self.names['action']} reaches {value:.6g} in dimension {dimension}, {allowed}"
        )

    def hand_over(self, rows: Arrays) -> Arrays:
        """Rows whose successor is known; trajectories without a transition are left out."""
        last = rows["last"]
        empty = last & np.concatenate(([self.previous_last], last[:-1]))
        self.counts.too_short += int(empty.sum())
        if len(last):
            self.previous_last = bool(last[-1])
        rows = joined(self.held, {name: array[~empty] for name, array in rows.items()})
        last_transition = np.flatnonzero(rows["last"][1:])
        if self.reading.fill_reward == "end" and "reward" not in self.names:
            rows["reward"][last_transition] = 1
        ended = rows["continues"][last_transition] == 0
        self.counts.terminals += int(ended.sum())
        self.counts.cuts += int((~ended).sum())
        self.held = {name: array[-1:].copy() for name, array in rows.items()}
        return {name: array[:-1] for name, array in rows.items()}


def joined(first: Arrays | None, second: Arrays) -> Arrays:
    if first is None:
        return second
    return {name: np.concatenate((array, second[name])) for name, array in first.items()}


def assemble(arrays: Mapping[str, np.ndarray], reading: Reading) -> tuple[Arrays, Counts]:
    """All rows of steps that are in memory."""
    assembler = Assembler({name: name for name in arrays}, reading)
    parts = [assembler.add(arrays), assembler.end_file(), assembler.finish()]
    parts = [part for part in parts if part]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in ROW_ARRAYS}
    return rows, assembler.counts
