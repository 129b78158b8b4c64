"""Format an audit as the lines that `drol data check` prints."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from drol.data.actions import ACTION_LIMIT
from drol.data.clock import describe_sampling
from drol.data.dimensions import Dimensions, named_or_numbered
from drol.data.importing.column_statistics import Statistics
from drol.data.moments import Moments
from drol.data.readers.columns import Unused
from drol.errors import counted
from drol.machine import bytes_in_words

if TYPE_CHECKING:
    from drol.data.importing.audit import Audit

SHOWN_DIMENSIONS = 16
SHOWN_FILES = 4
SHOWN_NAMES = 64
SHOWN_NUMBERS = 3  # numbers of an observation or action in the table of first rows
TIMING = "computed from the row of the action, which holds what is seen before it"
WIDTH = 100
LABEL = 32  # characters of a name in a table
ENDS = {
    None: "not clear, here taken as cuts",
    "flags": "as marked",
    "terminal": "every end that is marked is a true end, as was asked for",
    "timeout": "every end is a cut, as was asked for",
}


def audit_lines(audit: "Audit") -> list[str]:
    """Return the lines of an audit."""
    return [
        *introduction(audit),
        *description(audit),
        *not_used(audit.unused),
        *first_rows(audit),
        *summary(audit.statistics, audit.dimensions),
        *conclusion(audit),
    ]


def introduction(audit: "Audit") -> list[str]:
    """Return the lines with the location and size of the data."""
    more = f" and {len(audit.files) - SHOWN_FILES} more" if len(audit.files) > SHOWN_FILES else ""
    files = ", ".join(audit.files[:SHOWN_FILES]) + more
    if not audit.stored:
        return [f"{files}: {audit.counts.steps:,} steps, not imported"]
    size = bytes_in_words(sum(audit.stored.nbytes(split) for split in audit.stored.splits))
    return [
        f"{audit.stored.manifest['name']}: {size} in {audit.stored.folder}, every checksum right",
        entry("read from", f"{files or 'Python'}; {audit.counts.steps:,} steps"),
    ]


def description(audit: "Audit") -> list[str]:
    """Return the lines that describe how the data were interpreted."""
    counts, statistics, names, box = audit.counts, audit.statistics, audit.fields, audit.box
    shape = statistics.image_shape
    seen = f"images {' x '.join(map(str, shape))}" if shape else numbers(len(statistics.observation.low))
    scaled = f"scaled from {range_of(box.low)} to {range_of(box.high)}" if box else "not scaled, so in [-1, 1]"
    scaled += f"; those at the limit are stored as +-{ACTION_LIMIT}"
    marks = ", ".join(names[name] for name in ("terminal", "timeout", "end", "episode") if name in names)
    computed = f"; {TIMING}" if "success" in names and "is true" in names.get("reward", "") else ""
    lines = [
        entry("observation", f"{names['observation']}: {seen}"),
        *wrapped(in_order(audit.dimensions["observation"])),
        entry("action", f"{names['action']}: {numbers(len(statistics.action.low))}, {scaled}"),
        *wrapped(in_order(audit.dimensions["action"])),
        entry("reward", names.get("reward", "none, so it was filled in") + computed),
        entry("ends", f"{ENDS[audit.ends]} (by {marks or 'the end of each file'}):"),
        entry("", f"{counted(counts.terminals, 'true end')}, beyond which nothing is bootstrapped"),
        entry(
            "",
            f"{counted(counts.cuts, 'cut')} (time limit, gap or end of a file), beyond which values are bootstrapped",
        ),
    ]
    if counts.without_next:
        text = f"{counted(counts.without_next, 'final step')} without a next observation: only the observation is used"
        lines.append(entry("", text))
    if audit.sampling:
        lines.append(entry("time", describe_sampling(audit.sampling)))
    elif not audit.stored:
        lines.append(entry("time", f"{names['time']}" if "time" in names else "no time column was found (--time)"))
    if counts.converted:
        converted = ", ".join(f"{name} from {kind}" for name, kind in counts.converted.items())
        lines.append(entry("to float32", converted))
    bad = ", ".join(f"{name} {count:,}" for name, count in counts.not_finite.items())
    lines.append(entry("NaN, infinite", bad or "none"))
    lines.append(entry("episodes", f"{statistics.episodes:,} with {counted(statistics.transitions, 'transition')}"))
    if audit.splits:
        (episodes, transitions), (held_out, held_out_transitions) = audit.splits["train"], audit.splits["validation"]
        text = f"{counted(episodes, 'episode')} ({counted(transitions, 'transition')}) to train on, {held_out:,}"
        lines.append(entry("split", f"{text} ({held_out_transitions:,}) held out"))
    return lines


def in_order(dimensions: Dimensions | None) -> list[str]:
    """Return the names of the dimensions in order, with an introduction."""
    if dimensions is None or len(dimensions.names) == 1:
        return []
    names = dimensions.describe()
    more = [f"and {len(names) - SHOWN_NAMES} more"] if len(names) > SHOWN_NAMES else []
    return ["in this order:", *names[:SHOWN_NAMES], *more]


def wrapped(words: Sequence[str]) -> list[str]:
    """Return words separated by commas, wrapped to lines of about `WIDTH` characters."""
    lines, line = [], ""
    for number, word in enumerate(words):
        piece = word + ("" if word.endswith(":") or number == len(words) - 1 else ",")
        if line and len(line) + len(piece) >= WIDTH:
            lines.append(entry("", line))
            line = ""
        line = f"{line} {piece}" if line else piece
    return [*lines, entry("", line)] if line else []


def not_used(unused: Sequence[Unused]) -> list[str]:
    """Return lines with the unused columns, grouped by the reason."""
    reasons: dict[str, list[str]] = {}
    for each in unused:
        reasons.setdefault(each.why, []).append(f"{each.name} ({each.words})" if each.words else each.name)
    lines = ["", "  not used" if unused else "  everything in the files is used"]
    for why, names in reasons.items():
        shown = ", ".join(names[:SHOWN_NAMES]) + (f" and {len(names) - SHOWN_NAMES} more" if len(names) > 64 else "")
        lines.append(f"    - {shown}: {why}")
    return lines


def first_rows(audit: "Audit") -> list[str]:
    """Return a table of the first rows of an episode: observation, action and reward of each."""
    rows = audit.first_rows
    if not rows or audit.statistics.image_shape:
        return []
    names = {
        what: named_or_numbered(audit.dimensions[what], what, rows[what].shape[1])[:SHOWN_NUMBERS]
        for what in ("observation", "action")
    }
    cells = [[f"{name[-11:]:>12s}" for what in names for name in names[what]] + [f"{'reward':>12s}", "  goes on"]]
    for row in range(len(rows["last"])):
        shown = [f"{value:>12.4g}" for what in names for value in rows[what][row, :SHOWN_NUMBERS]]
        if rows["last"][row]:
            count = len(names["action"])
            shown = shown[:-count] + [f"{'-':>12s}"] * count + [f"{'-':>12s}", "  last observation"]
        else:
            shown += [f"{rows['reward'][row]:>12.4g}", "  yes" if rows["continues"][row] else "  no: a true end"]
        cells.append(shown)
    head = "  the first rows of an episode, as they are stored: what is seen, then what is done, then what that earned"
    return ["", head, *(f"  {number - 1 if number else '':<14}" + "".join(line) for number, line in enumerate(cells))]


def conclusion(audit: "Audit") -> list[str]:
    """Return the lines with the notes and with the errors that an import would raise."""
    lines = ["", "to know:" if audit.notes else "nothing looks wrong", *(f"  - {note}" for note in audit.notes)]
    if not audit.stored:
        lines += ["", "would be refused:" if audit.problems else "nothing would be refused"]
    return lines + [f"  - {problem}" for problem in audit.problems]


def summary(statistics: Statistics, dimensions: Mapping[str, Dimensions | None]) -> list[str]:
    """Return tables of lengths, returns and ranges."""
    lines = ["", f"  {'':14s}{'smallest':>12s}{'median':>12s}{'largest':>12s}"]
    for name, parts in (("length", statistics.lengths), ("return", statistics.returns)):
        if parts:
            values = np.concatenate(parts)
            cells = "".join(f"{number:>12,.6g}" for number in (values.min(), np.median(values), values.max()))
            lines.append(entry(name, cells))
    parts = {name: getattr(statistics, name) for name in ("observation", "action", "reward")}
    labels = [
        label for name in parts for label in labels_of(name, parts[name], dimensions.get(name))[:SHOWN_DIMENSIONS]
    ]
    width = max([13, *map(len, labels)]) + 1
    lines += ["", f"  {'':{width}s}{'smallest':>12s}{'mean':>12s}{'largest':>12s}{'deviation':>12s}"]
    for name, moments in parts.items():
        lines += table(name, moments, dimensions.get(name), width)
    return lines


def table(name: str, moments: Moments, dimensions: Dimensions | None, width: int = 14) -> list[str]:
    """Return a line for each of the first dimensions, and one line for the rest."""
    size = len(moments.low)
    labels = labels_of(name, moments, dimensions)
    columns = (moments.low, moments.mean, moments.high, moments.deviation)
    lines = [
        f"  {label:{width}s}" + "".join(f"{column[number]:>12.4g}" for column in columns)
        for number, label in enumerate(labels[:SHOWN_DIMENSIONS])
    ]
    if size > SHOWN_DIMENSIONS:
        rest = slice(SHOWN_DIMENSIONS, None)
        low, high = moments.low[rest].min(), moments.high[rest].max()
        lines.append(f"  {name} {SHOWN_DIMENSIONS} to {size - 1} lie between {low:.4g} and {high:.4g}")
    return lines


def labels_of(name: str, moments: Moments, dimensions: Dimensions | None) -> list[str]:
    """Return a label for each dimension: the last `LABEL` characters of its name."""
    return [label[-LABEL:] for label in named_or_numbered(dimensions, name, len(moments.low))]


def entry(label: str, text: str) -> str:
    """Return a line of the report."""
    return f"  {label:14s}{text}"


def numbers(count: int) -> str:
    """Return a count of numbers as text: "1 number", "3 numbers"."""
    return "1 number" if count == 1 else f"{count} numbers"


def range_of(values: tuple[float, ...]) -> str:
    """Return the lower or upper bounds as text; a single number if all are equal."""
    return f"{values[0]:g}" if len(set(values)) == 1 else "(" + " ".join(f"{value:g}" for value in values[:8]) + ")"
