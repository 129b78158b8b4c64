"""Files that are to be imported or looked at: opened, understood, and what their numbers are called."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from drol.data.dimensions import Dimensions, Naming
from drol.data.files import find_files, open_steps
from drol.data.files.columns import Unused
from drol.data.files.fields import ALIASES, IGNORE, StepFile
from drol.data.files.options import ReadingOptions
from drol.data.files.rules.formula import Formula
from drol.data.files.rules.rewards import Goal, RewardRule
from drol.errors import InputError


@dataclasses.dataclass(frozen=True)
class Source:
    """Files that are open, and how they are to be understood."""

    files: list[StepFile]
    reading: ReadingOptions
    reward_rule: RewardRule | None
    naming: Mapping[str, Naming]
    ignored: tuple[str, ...] = ()  # fields that are not to be read

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        mapping: Mapping[str, Sequence[str]] | None,
        reading: ReadingOptions | None,
        naming: Mapping[str, Naming] | None,
    ) -> "Source":
        """Open files that have the same fields; nothing but headers is read."""
        reading, goal = reading or ReadingOptions(), None
        fields = dict(mapping or {})
        formula = Formula.parse(reading.formula) if reading.formula is not None else None
        if reading.goal:
            goal = Goal.parse(reading.goal, reading.goal_radius)
            formula = goal.formula
        if formula is not None:
            fields |= {"formula": formula.names, "reward": [IGNORE]}
        files = open_files(paths, fields)
        rule = RewardRule(formula, goal, find_parts(files, formula)) if formula else None
        one_each = reading.file_is_episode or all(file.is_episode for file in files)
        ignored = tuple(field for field, names in fields.items() if list(names) == [IGNORE])
        return cls(files, dataclasses.replace(reading, file_is_episode=one_each), rule, naming or {}, ignored)

    def dimensions(self, shapes: Mapping[str, tuple]) -> dict[str, Dimensions | None]:
        """Return what the numbers of observations and actions are called.

        Args:
            shapes: The shape of a step of each field, as it was found.
        """
        found = {}
        for what in ("observation", "action"):
            dimensions, shape = self.files[0].dimensions(what), shapes[what]
            if dimensions is not None and (len(shape) != 1 or len(dimensions.names) != shape[0]):
                dimensions = None
            found[what] = (
                self.naming.get(what, Naming()).applied(dimensions, what, shape[0]) if len(shape) == 1 else None
            )
        return found

    @property
    def unused(self) -> list[Unused]:
        """What is in any of the files and is not used, each name once."""
        found = {each.name: each for file in self.files for each in file.unused}
        for field in self.ignored:
            why = f"--{field.replace('_', '-')} none ignores it"
            if field == "reward" and self.reward_rule is not None:
                why = "the goal gives the reward" if self.reward_rule.goal else "the formula gives the reward"
            for name in set(ALIASES[field]) & found.keys():
                found[name] = dataclasses.replace(found[name], why=why)
        return list(found.values())

    @property
    def notes(self) -> list[str]:
        """What was decided without being asked for."""
        notes = list(dict.fromkeys(note for file in self.files for note in file.notes))
        observation = self.files[0].chosen["observation"]
        if observation == ["observation.state", "observation.environment_state"]:
            notes.append(
                "observation.environment_state stands beside observation.state, and both are the observation, in this "
                "order; --observation observation.state takes that alone"
            )
        if self.reading.box is not None and self.reading.box == self.files[0].box:
            notes.append("actions are scaled from the box of the environment that lies beside the data")
        return notes


def open_files(paths: Sequence[Path], mapping: Mapping[str, Sequence[str]]) -> list[StepFile]:
    """Open files that have the same fields; nothing but headers is read."""
    files = [open_steps(path, mapping) for path in find_files(paths)]
    for file in files[1:]:
        odd = sorted(file.names.keys() ^ files[0].names.keys())
        if odd:
            raise InputError(
                f"{odd[0]} is in only one of {files[0].path} and {file.path}; all files must have the same fields"
            )
        for what in ("observation", "action"):
            if file.dimensions(what) != files[0].dimensions(what):
                raise InputError(
                    f"the numbers of the {what} are not the same, or not in the same order, in {files[0].path} and "
                    f"{file.path}; name them in their order with --{what}"
                )
        if file.box != files[0].box:
            raise InputError(f"{files[0].path} and {file.path} have different boxes of actions; import them apart")
    return files


def find_parts(files: Sequence[StepFile], formula: Formula) -> dict[str, slice]:
    """Return which columns the names of a formula stand for; they must be the same in all files."""
    parts = files[0].parts_of_formula(formula.names)
    for file in files[1:]:
        if file.parts_of_formula(formula.names) != parts:
            raise InputError(f"the columns of the formula differ in {files[0].path} and {file.path}; import them apart")
    return parts
