"""Audit a dataset or files: their content, how steps were interpreted, and possible problems."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions, Naming
from drol.data.episodes_to_rows import NO_REWARD, Assembler
from drol.data.import_options import Counts, ReadingOptions, understand_ends
from drol.data.importing.audit_notes import find_notes, notes_on_time
from drol.data.importing.audit_text import audit_lines
from drol.data.importing.column_statistics import Statistics
from drol.data.importing.import_files import ReadProgress, Scaling, Source, read_rows, with_box
from drol.data.importing.relations import RowSample, notes_on_actions
from drol.data.importing.transform import Function
from drol.data.readers.columns import Unused
from drol.data.store.stored import StoredDataset
from drol.data.trajectory_rows import ROW_ARRAYS, check_rows
from drol.errors import InputError, plain
from drol.progress import Report

FIRST_ROWS = 6  # rows of the first episode in the report


@dataclass(frozen=True)
class Audit:
    """The content of files or of a dataset, how steps were interpreted, and possible problems; `print` shows it."""

    files: tuple[str, ...]  # the files that were read; empty for a dataset written from Python
    fields: Mapping[str, str]  # the available fields, each with its name in the files
    ends: str | None  # how ends are interpreted: "flags", "terminal", "timeout"; None: ambiguous
    box: ActionBox | None  # the action bounds, if actions are scaled
    counts: Counts
    statistics: Statistics
    notes: tuple[str, ...]  # notes to read before training
    dimensions: Mapping[str, Dimensions | None]  # names, units and frames of observations and actions
    unused: tuple[Unused, ...]  # unused columns of the files
    sampling: Mapping[str, Any] | None  # the interval between steps, if the files have times
    first_rows: Mapping[str, np.ndarray]  # the first rows of the first episode
    problems: tuple[str, ...] = ()  # errors that an import would raise
    stored: StoredDataset | None = None  # the dataset; None for files that are not imported

    @property
    def splits(self) -> dict[str, tuple[int, int]]:
        """The numbers of episodes and transitions of each split of a dataset."""
        splits = self.stored.manifest["splits"] if self.stored else {}
        return {name: (each["episodes"], each["transitions"]) if each else (0, 0) for name, each in splits.items()}

    def __str__(self) -> str:
        return "\n".join(map(plain, audit_lines(self)))  # names come from untrusted files


def audit_stored(name: str, root: Path | None = None, report: Report | None = None) -> Audit:
    """Return the audit of an imported dataset; verify the checksums of all its files.

    Args:
        name: The name of the dataset.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        report: Called with the number of bytes read.
    """
    stored = StoredDataset.open(name, root)
    manifest, statistics, sample = stored.manifest, Statistics(), RowSample()
    done, total = 0, 2 * sum(stored.nbytes(split) for split in stored.splits)

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if report:
            report(done, total, name)

    for split in stored.splits:
        stored.verify(split, advance)
        arrays = stored.arrays(split)
        try:
            check_rows(arrays)  # a checksum does not prove that the values are valid
        except InputError as error:
            raise InputError(f"{stored.folder / split} cannot be trained on: {error}") from error
        statistics.add_all(arrays, advance)
        sample.add(arrays)
    counts, dimensions = Counts(**manifest["counts"]), stored.dimensions
    unused = tuple(Unused(*each) for each in manifest["unused"])
    notes = [*manifest["notes"], *find_notes(statistics, counts, dimensions, not stored.has("validation"))]
    return Audit(
        files=tuple(file["name"] for file in manifest["files"]),
        fields=manifest["fields"],
        ends=manifest["ends"],
        box=stored.box if manifest["actions_scaled"] else None,
        counts=counts,
        statistics=statistics,
        notes=(*notes, *notes_on_time(manifest["sampling"]), *notes_on_actions(sample.relations(), dimensions)),
        dimensions=dimensions,
        unused=unused,
        sampling=manifest["sampling"],
        first_rows=first_episode(stored.arrays("train")),
        stored=stored,
    )


def audit_files(
    paths: Sequence[Path],
    mapping: Mapping[str, Sequence[str]] | None = None,
    reading: ReadingOptions | None = None,
    scaling: Scaling | None = None,
    report: Report | None = None,
    naming: Mapping[str, Naming] | None = None,
    transform: str | Function | None = None,
) -> Audit:
    """Return the audit of files before an import; list the errors that an import would raise.

    The arguments are those of `import_files`.
    """
    scaling = scaling or Scaling()
    source = Source.open(paths, mapping, reading, naming, transform)
    files = source.files
    progress = ReadProgress(files, scaling.passes, report)
    source = with_box(source, scaling, progress)
    reading = source.reading
    problems: dict[str, str] = {}
    names = files[0].names
    if "reward" not in names and reading.fill_reward is None:
        problems["reward"] = NO_REWARD
        reading = dataclasses.replace(reading, fill_reward="zero")
    try:
        understand_ends(names, reading)
    except InputError as error:
        problems["ends"] = str(error)
        no_marks = not {"terminal", "timeout", "end", "episode"} & names.keys()
        file_is_episode = reading.file_is_episode or no_marks
        reading = dataclasses.replace(reading, ends="timeout", file_is_episode=file_is_episode)
    assembler, statistics, sample = Assembler(names, reading, problems), Statistics(), RowSample()
    first: dict[str, np.ndarray] = {}
    for rows in read_rows(files, assembler, progress):
        statistics.add(rows)
        sample.add(rows)
        first = first or (first_episode(rows) if rows and len(rows["last"]) else {})
    dimensions = source.dimensions(assembler.shapes) if assembler.shapes else {"observation": None, "action": None}
    sampling = assembler.clock.summary() if assembler.clock else None
    return Audit(
        files=tuple(str(file.path) for file in files),
        fields=assembler.names,
        ends=None if "ends" in problems else assembler.ends,
        box=reading.box,
        counts=assembler.counts,
        statistics=statistics,
        notes=(
            *source.notes,
            *find_notes(statistics, assembler.counts, dimensions),
            *notes_on_time(sampling),
            *notes_on_actions(sample.relations(), dimensions),
        ),
        dimensions=dimensions,
        unused=tuple(source.unused),
        sampling=sampling,
        first_rows=first,
        problems=tuple(problems.values()),
    )


def first_episode(rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the first rows of the first episode."""
    ends = np.flatnonzero(rows["last"])
    stop = min(FIRST_ROWS, int(ends[0]) + 1 if len(ends) else FIRST_ROWS)
    return {name: np.array(rows[name][:stop]) for name in ROW_ARRAYS}
