"""A report on a dataset that a person reads in a minute: what it holds, how it was understood, what looks wrong."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drol.data.actions import ActionBox
from drol.data.files.episodes import NO_REWARD, Assembler
from drol.data.files.options import Counts, ReadingOptions, understand_ends
from drol.data.moments import Moments
from drol.data.rows import check_rows
from drol.data.store.importing import ReadProgress, Scaling, find_box, open_files, read_rows
from drol.data.store.notes import find_notes
from drol.data.store.statistics import Statistics
from drol.data.store.stored import StoredDataset
from drol.errors import InputError, plain
from drol.machine import bytes_in_words
from drol.progress import Report

SHOWN_DIMENSIONS = 16
SHOWN_FILES = 4
ENDS = {
    None: "not clear, here taken as cuts",
    "flags": "as marked",
    "terminal": "every end that is marked is a true end, as was asked for",
    "timeout": "every end is a cut, as was asked for",
}


@dataclass(frozen=True)
class Audit:
    """The content of some files or of a dataset, how it was understood, what looks wrong; `print(audit)` shows all."""

    files: tuple[str, ...]  # that were read; none for a dataset that was written from Python
    fields: Mapping[str, str]  # the fields that there are, each with its name in the files
    ends: str | None  # how ends are understood: "flags", "terminal", "timeout"; None: that is not clear
    box: ActionBox | None  # that actions are scaled from, if they are
    counts: Counts
    statistics: Statistics
    notes: tuple[str, ...]  # what to know before training
    problems: tuple[str, ...] = ()  # why an import would be refused
    stored: StoredDataset | None = None  # the dataset, unless these are files that are not imported

    @property
    def splits(self) -> dict[str, tuple[int, int]]:
        """Episodes and transitions of each split of a dataset."""
        splits = self.stored.manifest["splits"] if self.stored else {}
        return {name: (each["episodes"], each["transitions"]) if each else (0, 0) for name, each in splits.items()}

    def __str__(self) -> str:
        lines = [*self.introduction(), *self.description(), *summary(self.statistics), *self.conclusion()]
        return "\n".join(map(plain, lines))  # names come from files

    def introduction(self) -> list[str]:
        """Return the lines that say where the data is."""
        more = f" and {len(self.files) - SHOWN_FILES} more" if len(self.files) > SHOWN_FILES else ""
        files = ", ".join(self.files[:SHOWN_FILES]) + more
        if not self.stored:
            return [f"{files}: {self.counts.steps:,} steps, not imported"]
        size = bytes_in_words(sum(self.stored.nbytes(split) for split in self.stored.splits))
        return [
            f"{self.stored.manifest['name']}: {size} in {self.stored.folder}, every checksum right",
            entry("read from", f"{files or 'Python'}; {self.counts.steps:,} steps"),
        ]

    def description(self) -> list[str]:
        """Return the lines that say how the data was understood."""
        counts, statistics, names, box = self.counts, self.statistics, self.fields, self.box
        shape = statistics.image_shape
        seen = f"images {' x '.join(map(str, shape))}" if shape else numbers(len(statistics.observation.low))
        scaled = f"scaled from {range_of(box.low)} to {range_of(box.high)}" if box else "not scaled"
        marks = ", ".join(names[name] for name in ("terminal", "timeout", "end", "episode") if name in names)
        lines = [
            entry("observation", f"{names['observation']}: {seen}"),
            entry("action", f"{names['action']}: {numbers(len(statistics.action.low))}, {scaled}"),
            entry("reward", names.get("reward", "none, so it was filled in")),
            entry("ends", f"{ENDS[self.ends]} (by {marks or 'the end of each file'}):"),
            entry("", f"{counts.terminals:,} true ends, beyond which nothing is bootstrapped"),
            entry("", f"{counts.cuts:,} cuts (time limit, gap or end of a file), beyond which values are bootstrapped"),
        ]
        if counts.without_next:
            text = f"{counts.without_next:,} final steps have no next observation; only their observation is used"
            lines.append(entry("", text))
        if counts.converted:
            converted = ", ".join(f"{name} from {kind}" for name, kind in counts.converted.items())
            lines.append(entry("to float32", converted))
        bad = ", ".join(f"{name} {count:,}" for name, count in counts.not_finite.items())
        lines.append(entry("NaN, infinite", bad or "none"))
        lines.append(entry("episodes", f"{statistics.episodes:,} with {statistics.transitions:,} transitions"))
        if self.splits:
            (episodes, transitions), (held_out, held_out_transitions) = self.splits["train"], self.splits["validation"]
            text = f"{episodes:,} episodes ({transitions:,} transitions) to train on, {held_out:,}"
            lines.append(entry("split", f"{text} ({held_out_transitions:,}) held out"))
        return lines

    def conclusion(self) -> list[str]:
        """Return the lines that say what looks wrong and what would be refused."""
        lines = ["", "to know:" if self.notes else "nothing looks wrong", *(f"  - {note}" for note in self.notes)]
        if not self.stored:
            lines += ["", "would be refused:" if self.problems else "nothing would be refused"]
        return lines + [f"  - {problem}" for problem in self.problems]


def audit_stored(name: str, root: Path | None = None, report: Report | None = None) -> Audit:
    """Return the audit of an imported dataset; every byte of it is compared with its checksum.

    Args:
        name: The name of the dataset.
        root: The folder of all datasets (default: `$DROL_DATA` or `datasets`).
        report: Called with the bytes that were read.
    """
    stored = StoredDataset.open(name, root)
    manifest, statistics = stored.manifest, Statistics()
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
            check_rows(arrays)  # a checksum only tells that nothing changed since it was made
        except InputError as error:
            raise InputError(f"{stored.folder / split} cannot be trained on: {error}") from error
        statistics.add_all(arrays, advance)
    counts = Counts(**manifest["counts"])
    return Audit(
        files=tuple(file["name"] for file in manifest["files"]),
        fields=manifest["fields"],
        ends=manifest["ends"],
        box=stored.box if manifest["actions_scaled"] else None,
        counts=counts,
        statistics=statistics,
        notes=tuple(find_notes(statistics, counts, nothing_held_out=not stored.has("validation"))),
        stored=stored,
    )


def audit_files(
    paths: Sequence[Path],
    mapping: Mapping[str, Sequence[str]] | None = None,
    reading: ReadingOptions | None = None,
    scaling: Scaling | None = None,
    report: Report | None = None,
) -> Audit:
    """Return the audit of files before they are imported; what an import would refuse is listed, not raised.

    The arguments are those of `import_files`.
    """
    scaling = scaling or Scaling()
    files = open_files(paths, mapping or {})
    progress = ReadProgress(files, scaling.passes, report)
    reading = dataclasses.replace(reading or ReadingOptions(), box=find_box(files, scaling, progress))
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
    assembler, statistics = Assembler(names, reading, problems), Statistics()
    for rows in read_rows(files, assembler, progress):
        statistics.add(rows)
    return Audit(
        files=tuple(str(file.path) for file in files),
        fields=assembler.names,
        ends=None if "ends" in problems else assembler.ends,
        box=reading.box,
        counts=assembler.counts,
        statistics=statistics,
        notes=tuple(find_notes(statistics, assembler.counts)),
        problems=tuple(problems.values()),
    )


def summary(statistics: Statistics) -> list[str]:
    """Return lengths, returns and ranges as a small table."""
    lines = ["", f"  {'':14s}{'smallest':>12s}{'median':>12s}{'largest':>12s}"]
    for name, parts in (("length", statistics.lengths), ("return", statistics.returns)):
        if parts:
            values = np.concatenate(parts)
            cells = "".join(f"{number:>12,.6g}" for number in (values.min(), np.median(values), values.max()))
            lines.append(entry(name, cells))
    lines += ["", f"  {'':14s}{'smallest':>12s}{'mean':>12s}{'largest':>12s}{'deviation':>12s}"]
    for name in ("observation", "action", "reward"):
        lines += table(name, getattr(statistics, name))
    return lines


def table(name: str, moments: Moments) -> list[str]:
    """Return a line for each of the first dimensions, and one for all others."""
    size = len(moments.low)
    labels = [name] if size == 1 else [f"{name} {number}" for number in range(size)]
    columns = (moments.low, moments.mean, moments.high, moments.deviation)
    lines = [
        entry(label, "".join(f"{column[number]:>12.4g}" for column in columns))
        for number, label in enumerate(labels[:SHOWN_DIMENSIONS])
    ]
    if size > SHOWN_DIMENSIONS:
        rest = slice(SHOWN_DIMENSIONS, None)
        low, high = moments.low[rest].min(), moments.high[rest].max()
        lines.append(f"  {name} {SHOWN_DIMENSIONS} to {size - 1} lie between {low:.4g} and {high:.4g}")
    return lines


def entry(label: str, text: str) -> str:
    """Return a line of the report."""
    return f"  {label:14s}{text}"


def numbers(count: int) -> str:
    """Return a number of numbers in words."""
    return "1 number" if count == 1 else f"{count} numbers"


def range_of(values: tuple[float, ...]) -> str:
    """Return one side of a box; one number where all are equal."""
    return f"{values[0]:g}" if len(set(values)) == 1 else "(" + " ".join(f"{value:g}" for value in values[:8]) + ")"
