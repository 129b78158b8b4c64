"""Steps, as files and robots record them, turned into the rows of a `Dataset`.

How the episodes of imported files, of `Dataset.from_arrays` and of `EpisodeWriter` end is decided here; the loaders of
the benchmarks and online experience make rows of their own, by the rules of their environments. Where a task ended
nothing follows, and the value beyond it is not bootstrapped; where a time limit, the end of a file or a gap cut an
episode, it is. A cut needs the observation after it: from `next_observation` if there is one, else the observation of
the episode's final step takes its place and that step is no transition of its own.

An example: seven steps of a file that observed o0 to o6 and, where that is recorded, n0 to n6 after their actions. The
task ended with step 2 (T), a time limit cut the episode after step 4 (L), then the file ended. A star marks last rows,
of which only the observation counts; the other rows are transitions to the row after them.

    step                             0    1    2         3    4         5    6
    mark                                       T              L
    rows without next_observation    o0   o1   o2   o2*  o3   o4*       o5   o6*
    continues                        1    1    0         1              1
    rows with next_observation       o0   o1   o2   n2*  o3   o4   n4*  o5   o6   n6*
    continues                        1    1    0         1    1         1    1
"""

from collections.abc import Mapping

import numpy as np

from drol.data.files.checking import Marks, StepChecker
from drol.data.files.options import Counts, ReadingOptions, understand_ends
from drol.data.files.rules.filling import fill_previous
from drol.data.files.rules.rewards import RewardRule
from drol.data.rows import ROW_ARRAYS, Arrays, join_rows
from drol.errors import InputError

NO_REWARD = (
    "there is no reward; name it with --reward, or pass --fill-reward zero (imitation), end (1 on the last transition "
    "of each episode) or success (1 where --success is true), --reward-formula or --goal"
)


class Assembler(StepChecker):
    """Takes blocks of consecutive steps, gives rows: trajectories laid end to end, as `Dataset.from_rows` takes them.

    Args:
        names: The fields that blocks have, each with its name in the files, for messages.
        reading: How steps are to be understood.
        problems: Collects the messages of everything that would be refused; None: the first problem is raised.
        reward_rule: Computes rewards from the columns of the field "formula".
    """

    def __init__(
        self,
        names: Mapping[str, str],
        reading: ReadingOptions,
        problems: dict[str, str] | None = None,
        reward_rule: RewardRule | None = None,
    ):
        super().__init__(names, reading, problems)
        self.reward_rule, self.from_success = reward_rule, reading.fill_reward == "success" and "reward" not in names
        if self.from_success and "success" not in names:
            raise InputError("--fill-reward is success, but no column says it; name it with --success")
        if "reward" not in names and reading.fill_reward is None and reward_rule is None:
            raise InputError(NO_REWARD)
        if reward_rule is not None:
            self.names["reward"] = str(reward_rule)
        elif self.from_success:
            self.names["reward"] = f"1 where {names['success']} is true, else 0"
        self.ends = understand_ends(names, reading)
        self.newest_step: Arrays | None = None  # not yet a row: the step after it is not known
        self.newest_row: Arrays | None = None  # not yet given: the row after it is not known
        self.previous_last = True  # whether the row before the next one ends a trajectory

    def add(self, block: Mapping[str, np.ndarray], where: str = "the data") -> Arrays:
        """Take in the next steps of a file; return the rows that are certain by now."""
        self.where = where
        steps = self.convert(block)
        if not len(steps["action"]):
            return {}
        self.counts.steps += len(steps["action"])
        steps = join_rows(self.newest_step, steps)
        if self.reading.fill:
            self.fill(steps)
        self.newest_step = {name: array[-1:].copy() for name, array in steps.items()}
        return self.make_rows(steps, file_ended=False)

    def end_file(self) -> Arrays:
        """Return the rows that are certain once the file has ended; no episode goes on in the next file."""
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
        return rows or {}

    def make_rows(self, steps: Arrays, file_ended: bool) -> Arrays:
        """Return rows of all steps but the newest, whose successor is not known, or of the newest at the file's end."""
        count = len(steps["action"]) - (not file_ended)
        if count == 0:
            return {}
        ends, terminal = self.find_ends(steps, count, file_ended)
        if self.clock is not None:
            ends = ends | self.look_at_time(steps, ends)
        steps = dict(steps)
        reached = self.compute_rewards(steps, ends)
        marks = self.leave_out_nonfinite(steps, ends, terminal)
        marks.reached = reached
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

    def compute_rewards(self, steps: Arrays, ends: np.ndarray) -> np.ndarray | None:
        """Add the reward to steps where a rule gives it; return which of them have reached the goal."""
        if self.reward_rule is not None:
            reward, reached = self.reward_rule.evaluate(steps["formula"], ends)
            steps["reward"] = reward.astype(np.float32)
            return reached
        if self.from_success:
            steps["reward"] = steps["success"].astype(np.float32)
        return None

    def fill(self, steps: Arrays) -> None:
        """Fill missing values of steps, the first of which may be filled already, with those before them."""
        if len(steps["action"]) == 1:
            return  # the first of all: nothing is before it
        ends, _ = self.find_ends(steps, len(steps["action"]) - 1, file_ended=False)
        starts = np.concatenate(([self.newest_step is None], ends))
        for name, count in fill_previous(steps, starts, begin=0 if self.newest_step is None else 1).items():
            self.counts.filled[name] = self.counts.filled.get(name, 0) + count

    def leave_out_nonfinite(self, steps: Arrays, ends: np.ndarray, terminal: np.ndarray) -> Marks:
        """Return what becomes of each step when steps that are not finite are left out and their episodes cut there."""
        count, has_next = len(ends), "next_observation" in steps
        # Of a step that is no transition, action and reward are not used, so anything may stand there.
        bad_observation, bad_rest = self.find_nonfinite(steps, is_transition=~ends | terminal | has_next)
        left_out = bad_observation | bad_rest if has_next else bad_observation  # [steps], with the newest
        if not has_next:  # a good observation without a good action is still the end of the step before it
            ends, terminal = ends | bad_rest[:count], terminal & ~bad_rest[:count]
        before_left_out = np.zeros(count, bool)
        before_left_out[: len(left_out) - 1] = left_out[1:]
        return Marks(ends | before_left_out, terminal, left_out[:count])

    def cut_at_gaps(self, steps: Arrays, marks: Marks) -> None:
        """End trajectories where `next_observation` is not what the next step observed: steps are missing between."""
        inside = np.flatnonzero(~marks.ends)
        after, observation = (steps[name].reshape(len(steps[name]), -1) for name in ("next_observation", "observation"))
        gaps = inside[(after[inside] != observation[inside + 1]).any(-1)]
        marks.ends[gaps] = True
        self.counts.gaps += int((~marks.left_out[gaps]).sum())

    def lay_out(self, steps: Arrays, marks: Marks) -> Arrays:
        """Return a row for each step and, after each transition that ends a trajectory, a last row."""
        after = steps.get("next_observation")
        is_final = marks.ends & (marks.terminal | (after is not None))  # a transition that ends a trajectory
        is_last = marks.ends & ~is_final  # no transition: the step only holds the observation that ends a trajectory
        rows_of_step = np.where(marks.left_out, 0, 1 + is_final)
        step = np.repeat(np.arange(len(marks.ends)), rows_of_step)  # [rows], the step of each row
        added = np.zeros(len(step), bool)  # [rows], the last rows that no step of their own gives
        added[np.cumsum(rows_of_step)[is_final & ~marks.left_out] - 1] = True
        observation = steps["observation"][step]
        if after is not None:
            observation[added] = after[step[added]]
        action, last = steps["action"][step], added | is_last[step]
        self.check_actions(action[~last])
        self.counts.without_next += int((is_last & ~marks.left_out).sum())
        over = last | marks.terminal[step]
        if marks.reached is not None:
            over |= marks.reached[step]
            self.counts.reached += int((marks.reached[step] & ~last).sum())
        held_out = {"held_out": self.check_held_out(steps["held_out"], marks)[step]} if "held_out" in steps else {}
        return {
            "observation": observation,
            "action": action,
            "reward": steps["reward"][step] if "reward" in steps else np.zeros(len(step), np.float32),
            "continues": np.where(over, 0, 1).astype(np.float32),
            "last": last,
            **held_out,
        }

    def hold_back(self, rows: Arrays) -> Arrays:
        """Return the rows whose successor is known, without trajectories that have no transition; keep the newest."""
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
    """Return all rows of steps that are in memory, and what was counted."""
    assembler = Assembler({name: name for name in arrays}, reading)
    parts = [assembler.add(arrays), assembler.end_file(), assembler.finish()]
    parts = [part for part in parts if part]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in ROW_ARRAYS}
    return rows, assembler.counts
