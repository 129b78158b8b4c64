"""Read steps from HDF5 files: flat arrays (D4RL), a group per episode (Minari, robomimic), numbered arrays (d3rlpy)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.columns import ATTRIBUTE, IMAGE, NUMBERS, OTHER, TEXT, Column, describe_shape
from drol.data.readers.fields import (
    IGNORE,
    TEXT_FIELDS,
    StepFile,
    choose_fields,
    common_length,
    join_arrays,
    join_fields,
    quote,
    steps_in_block,
)
from drol.data.readers.hdf5 import HDF5File, find_fault, open_hdf5
from drol.data.readers.metadata import Description
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError

EPISODE = re.compile(r"(?:episode|demo)_(\d+)")
LONGEST_NAME = 100  # characters of a text attribute, or of the name of a demonstration in a mask
MOST_COLUMNS = 2000


def open_hdf5_steps(
    path: Path, mapping: Mapping[str, Sequence[str]] | None, beside: Description | None = None
) -> StepFile:
    """Open a file of steps; detect its layout from the names of its groups and arrays."""
    file = open_layout(path, mapping)
    if beside is not None:
        file.box, file.notes = beside.box, file.notes + beside.notes
    return file


def open_layout(path: Path, mapping: Mapping[str, Sequence[str]] | None) -> StepFile:
    with open_hdf5(path) as file:
        for prefix in ("", "data/"):
            group = prefix.removesuffix("/")
            if group and not hasattr(file.find(group) if group in file.names() else None, "keys"):
                continue
            matches = [match for name in file.names(group) if (match := EPISODE.fullmatch(name))]
            if matches:
                matches.sort(key=lambda match: int(match[1]))
                return EpisodeHDF5File(path, mapping, file, [prefix + match[0] for match in matches])
        if {"columns", "num_episodes", "version"} <= set(file.names()):
            return NumberedHDF5File(path, mapping, file)
        return FlatHDF5File(path, mapping, file)


def describe_arrays(file: HDF5File, group: str, paths: Sequence[str] | None = None) -> list[Column]:
    """Describe the arrays of a group, by their paths in the group, and the attributes of the group."""
    columns = []
    for path in file.walk(group) if paths is None else paths:
        name = path.removeprefix(f"{group}/") if group else path
        columns.append(describe_array(file, path, name))
        if len(columns) > MOST_COLUMNS:
            raise InputError(f"dataset file {file.path} has more than {MOST_COLUMNS} arrays; flat arrays are read")
    found = file.find(group) if group else file.file
    return columns + [attribute(name, group) for name in found.attrs]


def describe_array(file: HDF5File, path: str, name: str) -> Column:
    """Describe an array; its unit and frame are attributes that some writers add."""
    try:
        array = file.find(path)
        fault = find_fault(array)
    except InputError as error:
        return Column(name, OTHER, words="a link", why=str(error).partition(" has ")[2])
    if getattr(array, "shape", None) is None:
        return Column(name, OTHER, words="no array", why=fault or "it holds nothing")
    shape, dtype = tuple(array.shape[1:]), array.dtype
    if dtype.kind in "OS":
        return Column(name, TEXT, shape, "text", why="it is text")
    if not array.shape:
        return Column(name, OTHER, words=f"a single {dtype}", why="it is a single value, not a row for each step")
    kind = IMAGE if len(shape) == 3 and dtype == np.uint8 else NUMBERS if dtype.kind in "biuf" else OTHER
    why = "images cannot be joined with vectors" if kind == IMAGE else ""
    texts = {what: read_text(array.attrs, what) for what in ("unit", "units", "frame", "frame_id")}
    unit, frame = texts["unit"] or texts["units"], texts["frame"] or texts["frame_id"]
    return Column(name, kind, shape, describe_shape(str(dtype), shape), unit=unit, frame=frame, why=why)


def read_text(attributes: Any, name: str) -> str:
    """Return an attribute that is a short text; "" if it is missing or has another type."""
    value = attributes.get(name, "")
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    return value if isinstance(value, str) and len(value) <= LONGEST_NAME else ""


def attribute(name: str, group: str = "") -> Column:
    where = f"attribute of {group}" if group else "attribute of the file"
    return Column(str(name), ATTRIBUTE, words=where, why="attributes of files are not read")


class FlatHDF5File(StepFile):
    """Arrays of equal length with one row for each step."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None, file: HDF5File):
        self.path = path
        self.columns = describe_arrays(file, "")
        self.chosen = choose_fields(self.columns, mapping, path)
        self.may_be_text = TEXT_FIELDS if mapping is not None else tuple(self.chosen)
        arrays = self.arrays(file)
        if mapping is None:
            self.keep_steps({name: len(array) for name, array in arrays.items()})
            arrays = self.arrays(file)
        self.nbytes = sum(array.nbytes for array in arrays.values())
        self.steps = common_length(path, {name: len(array) for name, array in arrays.items()})

    def arrays(self, file: HDF5File) -> dict[str, Any]:
        return {
            name: file.step_array(name, field in self.may_be_text)
            for field, names in self.chosen.items()
            for name in names
        }

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        count = steps_in_block(self.nbytes // max(1, self.steps))
        with open_hdf5(self.path) as file:
            arrays = self.arrays(file)
            for start in range(0, self.steps, count):
                stop = min(start + count, self.steps)
                parts = {name: array[start:stop] for name, array in arrays.items()}
                yield join_fields(parts, self.chosen), stop / self.steps


class EpisodeHDF5File(StepFile):
    """A group for each episode; if it has one more observation than actions, the extra one is the final observation."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None, file: HDF5File, groups: list[str]):
        self.path, self.groups = path, groups
        self.columns = describe_arrays(file, groups[0])
        self.chosen = choose_fields(self.columns, mapping, path)
        self.chosen.pop("episode", None)
        self.may_be_text = mapping is None
        arrays = self.arrays(file, groups[0])
        steps = min(map(len, arrays.values()), default=0) if mapping is None else len(arrays[self.chosen["action"][0]])
        fields = self.chosen if mapping is None else ("observation",)
        self.final = [field for field in fields if len(arrays[self.chosen[field][0]]) == steps + 1]
        # An estimate from the first episode, since opening every group takes as long as reading the data.
        self.nbytes = sum(array.nbytes for array in arrays.values()) * len(groups)
        self.held_out = self.read_masks(file, mapping or {})
        others = [
            name for name in file.names() if name != "mask" and name not in {each.split("/")[0] for each in groups}
        ]
        self.columns += [Column(name, OTHER, words="beside the episodes", why="no episode") for name in others]
        self.columns += [attribute(name) for name in file.file.attrs]
        parent = groups[0].rpartition("/")[0]
        self.columns += [attribute(name, parent) for name in (file.find(parent).attrs if parent else ())]

    def read_masks(self, file: HDF5File, mapping: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
        """Return the demonstrations that robomimic's mask/valid holds out; add unused masks to the columns."""
        masks = file.names("mask") if hasattr(file.find("mask") if "mask" in file.names() else None, "keys") else []
        wanted = "held_out" not in mapping and "valid" in masks
        if mapping.get("held_out") == [IGNORE]:
            why = "episodes are held out as --validation says"
        else:
            why = "only mask/valid is used, to hold out its episodes"
        split = ("train", "valid") if wanted else ()
        self.columns += [Column(f"mask/{name}", TEXT, words="a mask", why=why) for name in masks if name not in split]
        if not wanted:
            return None
        named = {name: read_mask(file, f"mask/{name}") for name in split if name in masks}
        own = {group.rpartition("/")[2] for group in self.groups}
        unknown = sorted(named["valid"] - own)
        if unknown:
            raise InputError(f"{self.path}: mask/valid names {quote(unknown[:3])}, which the file does not have")
        neither = own - named["valid"] - named.get("train", own)
        self.notes += (
            f"mask/valid holds out {len(named['valid'])} of {len(own)} episodes, as the file says"
            + (f"; {len(neither)} are in neither mask and are trained on" if neither else "")
            + "; --validation X holds out others",
        )
        return frozenset(named["valid"])

    @property
    def names(self) -> dict[str, str]:
        fields = {field: ", ".join(names) for field, names in self.chosen.items()} | {"episode": "the groups"}
        fields |= {"held_out": "mask/valid"} if self.held_out is not None else {}
        return fields | {f"next_{field}": fields[field] for field in self.final}

    def arrays(self, file: HDF5File, group: str) -> dict[str, Any]:
        return {
            name: file.step_array(f"{group}/{name}", self.may_be_text)
            for names in self.chosen.values()
            for name in names
        }

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        with open_hdf5(self.path) as file:
            for number, group in enumerate(self.groups):
                arrays = self.arrays(file, group)
                final = {name for field in self.final for name in self.chosen[field]}
                steps = min(map(len, arrays.values()))
                # Minari also records infos before the first action, so they may have one more row.
                extra = {name for name in arrays if name in final or (final and len(arrays[name]) == steps + 1)}
                lengths = {f"{group}/{name}": len(array) - (name in extra) for name, array in arrays.items()}
                steps = common_length(self.path, lengths)
                count = steps_in_block(sum(array.nbytes for array in arrays.values()) // max(1, steps))
                for start in range(0, steps, count):
                    stop = min(start + count, steps)
                    block = join_fields({name: array[start:stop] for name, array in arrays.items()}, self.chosen)
                    for field in self.final:
                        names = self.chosen[field]
                        beyond = join_arrays([arrays[name][start : stop + 1] for name in names], names)
                        block[field], block[f"next_{field}"] = beyond[:-1], beyond[1:]
                    block["episode"] = np.full(stop - start, number)
                    if self.held_out is not None:
                        block["held_out"] = np.full(stop - start, group.rpartition("/")[2] in self.held_out)
                    yield block, (number + stop / steps) / len(self.groups)


class NumberedHDF5File(StepFile):
    """d3rlpy's dump of a replay buffer: observations_0, actions_0, rewards_0, terminated_0, observations_1, ..."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]] | None, file: HDF5File):
        self.path = path
        matches = [match for name in file.names() if (match := re.fullmatch(r"terminated_(\d+)", name))]
        self.episodes = sorted(int(match[1]) for match in matches)
        if not self.episodes:
            raise InputError(f"{path} looks like a dump of d3rlpy but has no 'terminated_0'; write it again")
        count = file.array("num_episodes")
        declared = np.asarray(count).item() if count.size == 1 else f"{count.size} numbers of"
        if declared != len(self.episodes):
            raise InputError(f"{path} declares {declared} episodes but has {len(self.episodes)}; write it again")
        first = self.episodes[0]
        ending = re.compile(rf"(.+)_{first}((?:_\d+)?)")
        keys = [f"{match[1]}{match[2]}" for name in file.names() if (match := ending.fullmatch(name))]
        self.keys = [key for key in keys if key != "terminated"]
        self.columns = [describe_array(file, self.array_name(key, first), key) for key in self.keys]
        self.chosen = choose_fields(self.columns, None if mapping is None else {"terminal": [IGNORE], **mapping}, path)
        self.chosen.pop("episode", None)
        arrays = self.arrays(file, first)
        self.nbytes = sum(array.nbytes for array in arrays.values()) * len(self.episodes)
        self.columns += [
            Column(name, OTHER, words="of d3rlpy", why="it is d3rlpy's own count")
            for name in ("columns", "num_episodes", "version")
        ]

    @property
    def names(self) -> dict[str, str]:
        return super().names | {"terminal": "terminated", "episode": "the numbers of the arrays"}

    @staticmethod
    def array_name(key: str, episode: int) -> str:
        """Return the name of an array of an episode: observations_3, or observations_3_1 if there are several."""
        match = re.fullmatch(r"(.+?)((?:_\d+)?)", key)
        assert match
        return f"{match[1]}_{episode}{match[2]}"

    def arrays(self, file: HDF5File, episode: int) -> dict[str, Any]:
        names = [name for names in self.chosen.values() for name in names]
        return {name: file.step_array(self.array_name(name, episode)) for name in names}

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        with open_hdf5(self.path) as file:
            for number, episode in enumerate(self.episodes):
                arrays = self.arrays(file, episode)
                steps = common_length(self.path, {f"{name}_{episode}": len(array) for name, array in arrays.items()})
                ended = bool(np.asarray(file.array(f"terminated_{episode}")).reshape(-1)[0])
                count = steps_in_block(sum(array.nbytes for array in arrays.values()) // max(1, steps))
                for start in range(0, steps, count):
                    stop = min(start + count, steps)
                    block = join_fields({name: array[start:stop] for name, array in arrays.items()}, self.chosen)
                    block["terminal"] = np.arange(start, stop) == (steps - 1 if ended else -1)
                    block["episode"] = np.full(stop - start, number)
                    yield block, (number + stop / steps) / len(self.episodes)


def read_mask(file: HDF5File, name: str) -> frozenset[str]:
    """Return the names of the demonstrations in a mask of robomimic."""
    array = file.find(name)
    if getattr(array, "dtype", np.dtype(int)).kind not in "OS" or len(array.shape) != 1 or array.size > 1_000_000:
        raise InputError(f"dataset file {file.path}: {name} is not a list of names")
    texts = [each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in array[:]]
    return frozenset(text[:LONGEST_NAME] for text in texts)
