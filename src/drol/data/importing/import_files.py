"""Import files of all formats as a dataset on disk, in pieces, so that files may be larger than memory."""

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.actions import ActionBox, ActionRange
from drol.data.dimensions import Dimensions, Naming
from drol.data.episodes_to_rows import Assembler
from drol.data.import_options import ReadingOptions
from drol.data.importing.transform import Function, Transform, TransformedFile
from drol.data.readers import find_files, open_steps
from drol.data.readers.columns import Unused
from drol.data.readers.fields import ALIASES, IGNORE, StepFile
from drol.data.store.layout import data_root
from drol.data.store.stored import StoredDataset
from drol.data.store.writer import DatasetWriter
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError
from drol.machine import bytes_in_words
from drol.progress import Report

SHARE = 0.1  # default fraction of held-out episodes


@dataclasses.dataclass(frozen=True)
class Source:
    """Open files, and the options to interpret them."""

    files: list[StepFile]
    reading: ReadingOptions
    naming: Mapping[str, Naming]
    ignored: tuple[str, ...] = ()  # fields that the user disabled
    transform: Transform | None = None

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        mapping: Mapping[str, Sequence[str]] | None,
        reading: ReadingOptions | None,
        naming: Mapping[str, Naming] | None,
        transform: str | Function | None = None,
    ) -> "Source":
        """Open files with the same fields; read only headers, unless there is a transform."""
        reading, fields = reading or ReadingOptions(), dict(mapping or {})
        loaded = None if transform is None else Transform.load(transform)
        files = open_files(paths, fields, loaded)
        one_each = reading.file_is_episode or all(file.is_episode for file in files)
        ignored = tuple(field for field, names in fields.items() if list(names) == [IGNORE])
        return cls(files, dataclasses.replace(reading, file_is_episode=one_each), naming or {}, ignored, loaded)

    def dimensions(self, shapes: Mapping[str, tuple]) -> dict[str, Dimensions | None]:
        """Return the names, units and frames of observations and actions.

        Args:
            shapes: The actual shape of a step of each field.
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
        """The unused columns of all files, each name once."""
        found = {each.name: each for file in self.files for each in file.unused}
        for field in self.ignored:
            why = f"--{field.replace('_', '-')} none ignores it"
            for name in set(ALIASES[field]) & found.keys():
                found[name] = dataclasses.replace(found[name], why=why)
        return list(found.values())

    @property
    def notes(self) -> list[str]:
        """Notes on automatic decisions."""
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


def open_files(
    paths: Sequence[Path], mapping: Mapping[str, Sequence[str]], transform: Transform | None = None
) -> list[StepFile]:
    """Open files with the same fields; read only headers, unless there is a transform."""
    found = find_files(paths)
    files: list[StepFile] = [
        TransformedFile(path, mapping, transform, keep=len(found) == 1) if transform else open_steps(path, mapping)
        for path in found
    ]
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
            raise InputError(
                f"{files[0].path} and {file.path} have different action bounds; import them as two datasets"
            )
    return files


@dataclasses.dataclass(frozen=True)
class Scaling:
    """The scaling of actions to [-1, 1]: none, from given bounds, or from the range of the data."""

    from_data: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.low) != bool(self.high):
            raise InputError("only one of --action-low and --action-high was given; a box needs both")
        if self.from_data and self.low:
            raise InputError("--scale-actions takes the box from the data; leave it out or leave out the box")

    @property
    def passes(self) -> int:
        """The number of passes over the files."""
        return 2 if self.from_data else 1


class ReadProgress:
    """Reports the bytes read so far, in one or more passes over the files."""

    def __init__(self, files: Sequence[StepFile], passes: int, report: Report | None):
        self.total = max(1, passes * sum(file.nbytes for file in files))
        self.done_before = 0
        self.report = report

    def show(self, file: StepFile, share: float, what: str) -> None:
        """Report that the fraction `share` of a file was read."""
        if self.report:
            self.report(self.done_before + share * file.nbytes, self.total, f"{what} {file.path.name}")

    def end_file(self, file: StepFile) -> None:
        """Count a file as read."""
        self.done_before += file.nbytes


def import_files(
    paths: Sequence[Path],
    name: str,
    mapping: Mapping[str, Sequence[str]] | None = None,
    reading: ReadingOptions | None = None,
    scaling: Scaling | None = None,
    validation: float | None = None,
    seed: int = 0,
    root: Path | None = None,
    replace: bool = False,
    max_bytes: int | None = None,
    report: Report | None = None,
    naming: Mapping[str, Naming] | None = None,
    transform: str | Function | None = None,
) -> StoredDataset:
    """Import files as a dataset; write nothing if there is any error.

    Args:
        paths: The files, or folders that contain them.
        name: The name of the dataset.
        mapping: The arrays or columns of each field; other fields are found by their usual names.
        reading: How steps are interpreted.
        scaling: How actions are scaled to [-1, 1].
        validation: The fraction of episodes to hold out; None: the episodes that the files mark as held out, or a tenth
            if the files mark none.
        seed: The seed that chooses the held-out episodes.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        replace: Whether to replace an existing dataset of this name.
        max_bytes: The maximum uncompressed size of the files (default: the free disk space).
        report: Called with the number of bytes read.
        naming: Names, units and frames of "observation" and "action", which override those of the files.
        transform: A function from the columns of a file to the columns to import, or its name "module:function". It
            is called for each file with all its columns in memory.

    Returns:
        The dataset; `files/NAME` is the task to train on.
    """
    scaling = scaling or Scaling()
    share = SHARE if validation is None else validation
    writer = DatasetWriter(name, root, share, seed, replace)  # rejects an invalid name before a file is opened
    if validation is not None and "held_out" not in (mapping or {}):
        mapping = {**(mapping or {}), "held_out": [IGNORE]}
    source = Source.open(paths, mapping, reading, naming, transform)
    files = source.files
    check_size(files, root or data_root(), max_bytes)
    progress = ReadProgress(files, scaling.passes, report)
    source = with_box(source, scaling, progress)
    assembler = Assembler(files[0].names, source.reading)
    with writer:
        for rows in read_rows(files, assembler, progress, max_bytes):
            writer.append(rows)
        origin = [{"name": file.path.name, "bytes": size_of(file.path)} for file in files]
        writer.publish(describe(assembler, origin, source))
    return StoredDataset.open(name, root)


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in the folder of a recording."""
    inside = path.iterdir() if path.is_dir() else [path]
    return sum(each.stat().st_size for each in inside)


def with_box(source: Source, scaling: Scaling, progress: ReadProgress) -> Source:
    """Return the source with the action bounds for scaling."""
    box = find_box(source.files, scaling, progress)
    return dataclasses.replace(source, reading=dataclasses.replace(source.reading, box=box))


def describe(
    assembler: Assembler,
    files: list[dict[str, Any]],
    source: Source | None = None,
    dimensions: Mapping[str, Dimensions | None] | None = None,
) -> dict[str, Any]:
    """Return the entries of a manifest that describe the data and how steps were interpreted.

    Args:
        assembler: The assembler, after all steps were added.
        files: The name and size of each file; empty for data written from Python.
        source: The files, if there are any.
        dimensions: The names, units and frames of observations and actions if there are no files.
    """
    box, size = assembler.reading.box, assembler.shapes["action"][0]
    low, high = (box.low, box.high) if box else ((-1.0,) * size, (1.0,) * size)
    found = source.dimensions(assembler.shapes) if source else dimensions or {}
    named = {what: each.to_dict() if (each := found.get(what)) else None for what in ("observation", "action")}
    return {
        "action_low": list(low),
        "action_high": list(high),
        "actions_scaled": box is not None,
        "ends": assembler.ends,
        "fields": assembler.names,
        "dimensions": named,
        "sampling": assembler.clock.summary() if assembler.clock else None,
        "unused": [list(dataclasses.astuple(each)) for each in source.unused] if source else [],
        "notes": source.notes if source else [],
        "counts": dataclasses.asdict(assembler.counts),
        "files": files,
        "transform": source.transform.to_dict() if source and source.transform else None,
    }


def check_size(files: Sequence[StepFile], root: Path, max_bytes: int | None) -> None:
    """Raise `InputError` if the declared uncompressed size exceeds `max_bytes` or the free disk space."""
    total = sum(file.nbytes for file in files)
    if max_bytes is not None and total > max_bytes:
        raise InputError(f"the files hold {bytes_in_words(total)}; --max-bytes allows {bytes_in_words(max_bytes)}")
    while not root.exists():
        root = root.resolve().parent
    free = shutil.disk_usage(root).free
    if total > free:
        raise InputError(
            f"the files hold {bytes_in_words(total)}, and {root} has {bytes_in_words(free)} free; make room first"
        )


def find_box(files: Sequence[StepFile], scaling: Scaling, progress: ReadProgress) -> ActionBox | None:
    """Return the action bounds for scaling, or None; bounds from the data need a pass over the files."""
    if scaling.low:
        actions = (block["action"] for file in files for block, _ in file.blocks() if len(block["action"]))
        first = next(actions, None)
        size = len(scaling.low) if first is None else first.shape[1] if first.ndim > 1 else 1
        return ActionBox.of(scaling.low, scaling.high, size)
    if not scaling.from_data:
        box = files[0].box
        is_unit = box is not None and set(box.low) == {-1.0} and set(box.high) == {1.0}
        return None if is_unit else box
    found = ActionRange()
    for file in files:
        for block, share in file.blocks():
            found.add(np.asarray(block["action"]))
            progress.show(file, share, "looking for the range of actions in")
        progress.end_file(file)
    return ActionBox(tuple(found.low.tolist()), tuple(found.high.tolist())) if len(found.low) else None


def read_rows(
    files: Sequence[StepFile], assembler: Assembler, progress: ReadProgress, max_bytes: int | None = None
) -> Iterator[Arrays]:
    """Yield the rows of all files, block by block."""
    read = 0
    for file in files:
        assembler.where = str(file.path)
        for block, share in file.blocks():
            read += sum(array.nbytes for array in block.values())
            if max_bytes is not None and read > 4 * max_bytes:
                raise InputError(f"{file.path} unpacks to more than it declares; --max-bytes is {max_bytes}")
            yield assembler.add(block, str(file.path))
            progress.show(file, share, "reading")
        yield assembler.end_file()
        progress.end_file(file)
    yield assembler.finish()
