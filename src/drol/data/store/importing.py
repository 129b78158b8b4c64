"""Read files of any format into a dataset on disk, in pieces: memory stays small however large the files are."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from drol.data.actions import ActionBox
from drol.data.files import find_files, open_source
from drol.data.files.episodes import Arrays, Assembler
from drol.data.files.fields import Source
from drol.data.files.options import Reading
from drol.data.store.writer import DatasetWriter, StoredDataset, data_root
from drol.errors import InputError

Report = Callable[[float, str], None]  # the share that is done, and of what


@dataclasses.dataclass(frozen=True)
class Scaling:
    """What to do with actions that are not in [-1, 1]: nothing, a box that is given, or the box of the data."""

    from_data: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.low) != bool(self.high):
            raise InputError("only one of --action-low and --action-high was given; a box needs both")
        if self.from_data and self.low:
            raise InputError("--scale-actions takes the box from the data; leave it out or leave out the box")


def import_files(
    paths: Sequence[Path],
    name: str,
    mapping: Mapping[str, Sequence[str]] | None = None,
    reading: Reading | None = None,
    scaling: Scaling | None = None,
    validation: float = 0.1,
    seed: int = 0,
    root: Path | None = None,
    replace: bool = False,
    max_bytes: int | None = None,
    report: Report | None = None,
) -> StoredDataset:
    """Import files as the dataset `name`; if anything is wrong with them, nothing is written."""
    reading = reading or Reading()
    writer = DatasetWriter(name, root, validation, seed, replace)  # refuses a bad name before a file is opened
    sources = open_sources(paths, mapping or {})
    check_size(sources, root or data_root(), max_bytes)
    reading = dataclasses.replace(reading, box=find_box(sources, scaling or Scaling(), report))
    assembler = Assembler(sources[0].names, reading)
    with writer:
        for rows in read_rows(sources, assembler, report, max_bytes):
            writer.append(rows)
        writer.publish(
            {
                **describe_actions(reading.box, assembler.shapes["action"][0]),
                "ends": assembler.ends,
                "fields": assembler.names,
                "counts": dataclasses.asdict(assembler.counts),
                "sources": [{"name": each.path.name, "bytes": each.path.stat().st_size} for each in sources],
            }
        )
    return StoredDataset.open(name, root)


def describe_actions(box: ActionBox | None, size: int) -> dict:
    """The entries of a manifest that say what actions were before they were in [-1, 1]."""
    low, high = (box.low, box.high) if box else ((-1.0,) * size, (1.0,) * size)
    return {"action_low": list(low), "action_high": list(high), "actions_scaled": box is not None}


def open_sources(paths: Sequence[Path], mapping: Mapping[str, Sequence[str]]) -> list[Source]:
    sources = [open_source(path, mapping) for path in find_files(paths)]
    for source in sources[1:]:
        odd = sorted(source.names.keys() ^ sources[0].names.keys())
        if odd:
            raise InputError(
                f"{odd[0]} is in only one of {sources[0].path} and {source.path}; all files must have the same fields"
            )
    return sources


def check_size(sources: Sequence[Source], root: Path, max_bytes: int | None) -> None:
    """Before anything is unpacked: a small file can claim to hold more than any disk."""
    total = sum(source.nbytes for source in sources)
    if max_bytes is not None and total > max_bytes:
        raise InputError(f"the files hold {in_bytes(total)}; --max-bytes allows {in_bytes(max_bytes)}")
    while not root.exists():
        root = root.resolve().parent
    free = shutil.disk_usage(root).free
    if total > free:
        raise InputError(f"the files hold {in_bytes(total)}, and {root} has {in_bytes(free)} free; make room first")


def in_bytes(count: int) -> str:
    """A number of bytes as a person says it."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def find_box(sources: Sequence[Source], scaling: Scaling, report: Report | None) -> ActionBox | None:
    """The box that actions are scaled from; the data's own takes a pass over the files."""
    if scaling.low:
        first = next(
            (block["action"] for source in sources for block, _ in source.blocks() if len(block["action"])), None
        )
        size = len(scaling.low) if first is None else first.shape[1] if first.ndim > 1 else 1
        return ActionBox.of(scaling.low, scaling.high, size)
    if not scaling.from_data:
        return None
    low = high = None
    for number, source in enumerate(sources):
        for block, done in source.blocks():
            action = np.asarray(block["action"])
            if action.dtype.kind not in "biuf" or not action.size:
                continue
            action = action.astype(np.float64).reshape(len(action), -1)
            action = action[np.isfinite(action).all(-1)]
            if len(action):
                if low is not None and high is not None:
                    action = np.concatenate((action, [low, high])) if action.shape[1] == len(low) else action
                low, high = action.min(0), action.max(0)
            if report:
                report((number + done) / len(sources), "looking for the range of actions")
    if low is None or high is None:
        return None
    return ActionBox(tuple(low.tolist()), tuple(high.tolist()))


def read_rows(
    sources: Sequence[Source], assembler: Assembler, report: Report | None = None, max_bytes: int | None = None
) -> Iterator[Arrays]:
    """The rows of all files, some at a time."""
    total, done_before, read = max(1, sum(source.nbytes for source in sources)), 0, 0
    for source in sources:
        assembler.where = str(source.path)
        for block, done in source.blocks():
            read += sum(array.nbytes for array in block.values())
            if max_bytes is not None and read > 4 * max_bytes:
                raise InputError(f"{source.path} unpacks to more than it declares; --max-bytes is {max_bytes}")
            yield assembler.add(block, str(source.path))
            if report:
                report((done_before + done * source.nbytes) / total, f"reading {source.path.name}")
        yield assembler.end_file()
        done_before += source.nbytes
    yield assembler.finish()
