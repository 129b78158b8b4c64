"""HDF5 files: flat arrays (D4RL), or a group for each episode (Minari: episode_0, ...; robomimic: data/demo_0, ...)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.files.episodes import Arrays
from drol.data.files.fields import Source, block_steps, choose, equal_length, side_by_side
from drol.data.files.hdf5 import HDF5File, find_fault, open_hdf5
from drol.errors import InputError

EPISODE = re.compile(r"(?:episode|demo)_(\d+)")


def open_hdf5_source(path: Path, mapping: Mapping[str, Sequence[str]]) -> Source:
    """The file as what its groups say it is."""
    with open_hdf5(path) as file:
        for parent in ("", "data"):
            if parent and find_group(file, parent) is None:
                continue
            found = [name for name in file.names(parent) if EPISODE.fullmatch(name)]
            if found:
                found.sort(key=episode_number)
                prefix = f"{parent}/" if parent else ""
                return EpisodesSource(path, mapping, file, [prefix + name for name in found])
        return FlatSource(path, mapping, file)


def episode_number(name: str) -> int:
    match = EPISODE.fullmatch(name)
    assert match
    return int(match[1])


class FlatSource(Source):
    """Arrays of equal length; in each, a row is a step."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]], file: HDF5File):
        self.path = path
        self.chosen = choose(array_names(file, ""), mapping, path)
        arrays = {name: whole_array(file, name) for names in self.chosen.values() for name in names}
        self.nbytes = sum(array.nbytes for array in arrays.values())
        self.steps = equal_length(path, {name: len(array) for name, array in arrays.items()})

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        count = block_steps(self.nbytes // max(1, self.steps))
        with open_hdf5(self.path) as file:
            arrays = {name: whole_array(file, name) for names in self.chosen.values() for name in names}
            for start in range(0, self.steps, count):
                stop = min(start + count, self.steps)
                yield (
                    {
                        field: side_by_side([arrays[name][start:stop] for name in names], names)
                        for field, names in self.chosen.items()
                    },
                    stop / self.steps,
                )


class EpisodesSource(Source):
    """A group for each episode; where it has one observation more than actions, that is the final one."""

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]], file: HDF5File, groups: list[str]):
        self.path, self.groups = path, groups
        self.chosen = choose(array_names(file, groups[0]), mapping, path)
        self.chosen.pop("episode", None)
        arrays = [whole_array(file, f"{groups[0]}/{name}") for names in self.chosen.values() for name in names]
        self.has_next = "next_observation" in self.chosen
        self.has_final = len(arrays[0]) == len(whole_array(file, f"{groups[0]}/{self.chosen['action'][0]}")) + 1
        # Opening every group only to add up sizes would take as long as reading; episodes are about alike.
        self.nbytes = sum(array.nbytes for array in arrays) * len(groups)

    @property
    def names(self) -> dict[str, str]:
        fields = {field: ", ".join(names) for field, names in self.chosen.items()} | {"episode": "the groups"}
        return fields | ({"next_observation": fields["observation"]} if self.has_final else {})

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        with open_hdf5(self.path) as file:
            for number, group in enumerate(self.groups):
                arrays = {
                    field: [whole_array(file, f"{group}/{name}") for name in names]
                    for field, names in self.chosen.items()
                }
                steps = self.check_lengths(group, arrays)
                count = block_steps(sum(each.nbytes for parts in arrays.values() for each in parts) // max(1, steps))
                for start in range(0, steps, count):
                    stop = min(start + count, steps)
                    block = {
                        field: side_by_side([part[start:stop] for part in parts], self.chosen[field])
                        for field, parts in arrays.items()
                    }
                    if self.has_final:
                        beyond = [part[start : stop + 1] for part in arrays["observation"]]
                        beyond = side_by_side(beyond, self.chosen["observation"])
                        block["observation"], block["next_observation"] = beyond[:-1], beyond[1:]
                    block["episode"] = np.full(stop - start, number)
                    yield block, (number + stop / steps) / len(self.groups)

    def check_lengths(self, group: str, arrays: Mapping[str, list[Any]]) -> int:
        lengths = {}
        for field, parts in arrays.items():
            for name, part in zip(self.chosen[field], parts, strict=True):
                lengths[f"{group}/{name}"] = len(part) - (self.has_final and field == "observation")
        return equal_length(self.path, lengths)


def find_group(file: HDF5File, name: str) -> Any:
    return file.find(name) if name in file.names() and hasattr(file.find(name), "keys") else None


def array_names(file: HDF5File, group: str) -> list[str]:
    """The arrays of a group and, one level down, of its groups; links are left out until somebody asks for one."""
    names = []
    for name in file.names(group):
        path = f"{group}/{name}" if group else name
        try:
            node = file.find(path)
        except InputError:
            names.append(name)
            continue
        names += [f"{name}/{inner}" for inner in file.names(path)] if hasattr(node, "keys") else [name]
    return names


def whole_array(file: HDF5File, name: str) -> Any:
    """An array of the file that may be read, or why it may not."""
    array = file.find(name)
    if array is None:
        raise InputError(f"{file.path} has no {name!r}, which other episodes have")
    fault = find_fault(array)
    if fault:
        raise InputError(f"{file.path} is refused: {name!r} {fault}")
    if not array.shape:
        raise InputError(f"{file.path}: {name!r} is a single value; it must have a row for each step")
    return array
