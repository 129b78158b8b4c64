"""Read files of any format into a dataset on disk, in pieces: memory stays small however large the files are."""

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions, Naming
from drol.data.files.episodes import Assembler
from drol.data.files.fields import IGNORE, StepFile
from drol.data.files.options import ReadingOptions
from drol.data.files.rules.sorting import sorted_blocks
from drol.data.rows import Arrays
from drol.data.store.layout import data_root
from drol.data.store.source import Source
from drol.data.store.stored import StoredDataset
from drol.data.store.writer import DatasetWriter
from drol.errors import InputError
from drol.machine import bytes_in_words
from drol.progress import Report

SHARE = 0.1  # of the episodes that is held out


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Scaling of actions to [-1, 1]: none, from a box that is given, or from the box of the data."""

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
        """The number of times that the files are read."""
        return 2 if self.from_data else 1


class ReadProgress:
    """Reports how many bytes of some files were read, in one pass over them or several."""

    def __init__(self, files: Sequence[StepFile], passes: int, report: Report | None):
        self.total = max(1, passes * sum(file.nbytes for file in files))
        self.done_before = 0
        self.report = report

    def show(self, file: StepFile, share: float, what: str) -> None:
        """Report that a share of a file was read."""
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
) -> StoredDataset:
    """Import files as a dataset; if anything is wrong with them, nothing is written.

    Args:
        paths: The files, or folders that hold them.
        name: The name of the dataset.
        mapping: The arrays or columns of each field; fields that are not named are looked for by their usual names.
        reading: How steps are to be understood.
        scaling: How actions are scaled to [-1, 1].
        validation: The share of episodes to hold out; None: those that the files hold out, else a tenth.
        seed: Chooses them.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        replace: Whether a dataset of this name may be replaced.
        max_bytes: Refuse files that unpack to more (default: what the disk can hold).
        report: Called with the bytes that were read.
        naming: Names, units and frames of "observation" and "action", where files do not have them.

    Returns:
        The dataset; `files/NAME` is the task to train on.
    """
    scaling = scaling or Scaling()
    share = SHARE if validation is None else validation
    writer = DatasetWriter(name, root, share, seed, replace)  # refuses a bad name before a file is opened
    if validation is not None and "held_out" not in (mapping or {}):
        mapping = {**(mapping or {}), "held_out": [IGNORE]}
    source = Source.open(paths, mapping, reading, naming)
    files = source.files
    check_size(files, root or data_root(), max_bytes)
    progress = ReadProgress(files, scaling.passes, report)
    source = with_box(source, scaling, progress)
    assembler = Assembler(files[0].names, source.reading, reward_rule=source.reward_rule)
    with writer:
        for rows in read_rows(files, assembler, progress, max_bytes):
            writer.append(rows)
        origin = [{"name": file.path.name, "bytes": size_of(file.path)} for file in files]
        writer.publish(describe(assembler, origin, source))
    return StoredDataset.open(name, root)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder that is one recording."""
    inside = path.iterdir() if path.is_dir() else [path]
    return sum(each.stat().st_size for each in inside)


def with_box(source: Source, scaling: Scaling, progress: ReadProgress) -> Source:
    """Return the source with the box that actions are scaled from."""
    box = find_box(source.files, scaling, progress)
    return dataclasses.replace(source, reading=dataclasses.replace(source.reading, box=box))


def describe(
    assembler: Assembler,
    files: list[dict[str, Any]],
    source: Source | None = None,
    dimensions: Mapping[str, Dimensions | None] | None = None,
) -> dict[str, Any]:
    """Return the entries of a manifest that say what the data is and how it was understood.

    Args:
        assembler: Has seen all steps.
        files: Name and size of each file that was read; empty for data that was written from Python.
        source: The files, if there are any.
        dimensions: What the numbers of observations and actions are called, if no file says it.
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
    }


def check_size(files: Sequence[StepFile], root: Path, max_bytes: int | None) -> None:
    """Raise `InputError` for more than is allowed, before anything is unpacked: a small file can claim to be huge."""
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
    """Return the box that actions are scaled from, None if they are not; the data's own takes a pass over the files."""
    if scaling.low:
        actions = (block["action"] for file in files for block, _ in file.blocks() if len(block["action"]))
        first = next(actions, None)
        size = len(scaling.low) if first is None else first.shape[1] if first.ndim > 1 else 1
        return ActionBox.of(scaling.low, scaling.high, size)
    if not scaling.from_data:
        box = files[0].box
        is_unit = box is not None and set(box.low) == {-1.0} and set(box.high) == {1.0}
        return None if is_unit else box
    low = high = None
    for file in files:
        for block, share in file.blocks():
            action = np.asarray(block["action"])
            if action.dtype.kind not in "biuf" or not action.size:
                continue
            action = action.astype(np.float64).reshape(len(action), -1)
            action = action[np.isfinite(action).all(-1)]
            if len(action):
                if low is not None and high is not None:
                    action = np.concatenate((action, [low, high])) if action.shape[1] == len(low) else action
                low, high = action.min(0), action.max(0)
            progress.show(file, share, "looking for the range of actions in")
        progress.end_file(file)
    if low is None or high is None:
        return None
    return ActionBox(tuple(low.tolist()), tuple(high.tolist()))


def read_rows(
    files: Sequence[StepFile], assembler: Assembler, progress: ReadProgress, max_bytes: int | None = None
) -> Iterator[Arrays]:
    """Yield the rows of all files, some at a time."""
    read = 0
    for file in files:
        assembler.where = str(file.path)
        for block, share in sorted_blocks(file) if assembler.reading.sort_by_time else file.blocks():
            read += sum(array.nbytes for array in block.values())
            if max_bytes is not None and read > 4 * max_bytes:
                raise InputError(f"{file.path} unpacks to more than it declares; --max-bytes is {max_bytes}")
            yield assembler.add(block, str(file.path))
            progress.show(file, share, "reading")
        yield assembler.end_file()
        progress.end_file(file)
    yield assembler.finish()
