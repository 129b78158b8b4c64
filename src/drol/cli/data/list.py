"""`drol data list`."""

import json
from itertools import groupby
from typing import Any

from drol.cli.flags import Parser
from drol.errors import InputError
from drol.tasks.catalogue import DatasetEntry, all_datasets

EPILOG = """examples:
  drol data list                 every dataset, by source
  drol data list cube play       those whose names have both words
  drol data list scene --all     their tasks, one a line
  drol data list --here --json   what is on this machine, for programs"""


def run(arguments: list[str]) -> int:
    parser = Parser("data list", "Every dataset that drol knows: its size, whether it is here, how it is got.", EPILOG)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only names that have every word in them")
    parser.add_argument("--all", action="store_true", help="one line for each task instead of each dataset")
    parser.add_argument("--here", action="store_true", help="only what is on this machine")
    parser.add_argument("--json", action="store_true", help="as JSON, sizes in bytes")
    parsed = parser.parse(arguments)
    rows = [
        (source, entry)
        for source, _, entry in all_datasets()
        if (entry.present or not parsed.here)
        and all(any(word in name for name in (entry.name, *entry.tasks, source)) for word in parsed.words)
    ]
    if not rows and parsed.words and not parsed.here:
        raise InputError(
            f"no dataset has {' and '.join(map(repr, parsed.words))} in its name; `drol data list` has all"
        )
    if parsed.json:
        print(json.dumps([{"source": source, **as_dict(entry)} for source, entry in rows], indent=2))
    elif parsed.all:
        for _, entry in rows:
            for task in entry.tasks:
                if all(word in task or word in entry.name for word in parsed.words):
                    print(f"{task:60s}  {'here' if entry.present else '-'}")
    else:
        show(rows)
    return 0


def show(rows: list[tuple[str, DatasetEntry]]) -> None:
    width = max((len(entry.name) for _, entry in rows), default=0)
    for source, group in groupby(rows, key=lambda row: row[0]):
        entries = [entry for _, entry in group]
        tasks = sum(len(entry.tasks) for entry in entries)
        here = sum(entry.present for entry in entries)
        print(f"{source}: {len(entries)} datasets, {tasks} tasks, {here} here")
        head = f"  {'dataset':{width}s}  {'transitions':>11s}  {'observation':>11s}  {'action':>6s}  {'memory':>8s}"
        print(f"{head}  {'here':8s}  how to get it")
        for entry in entries:
            ways = [way for way in entry.ways if way != "--dataset"] or entry.ways  # any can be a file of one's own
            print(
                f"  {entry.name:{width}s}  {f'{entry.transitions:,}' if entry.transitions else '-':>11s}"
                f"  {entry.observation or '-':>11s}  {entry.action or '-':>6}  {size(entry.memory):>8s}"
                f"  {size(file_bytes(entry)) if entry.present else '-':8s}  {', '.join(ways) or '-'}"
            )
        print()
    print("A dataset has several tasks: `drol data list WORD --all` names them.")
    print(
        "`drol data download NAME` fetches one, `drol data collect NAME` makes one, --dataset names a file of your own."
    )


def as_dict(entry: DatasetEntry) -> dict[str, Any]:
    return {
        "dataset": entry.name,
        "tasks": list(entry.tasks),
        "transitions": entry.transitions,
        "observation": entry.observation,
        "action": entry.action,
        "memory_bytes": entry.memory,
        "path": str(entry.path) if entry.path else None,
        "here": entry.present,
        "file_bytes": file_bytes(entry) if entry.present else None,
        "ways": list(entry.ways),
    }


def file_bytes(entry: DatasetEntry) -> int:
    """Of those of its files that are here."""
    paths = [entry.folder / name for name in entry.files] if entry.folder else []
    return sum(path.stat().st_size for path in paths if path.is_file())


def size(count: int | None) -> str:
    """Bytes as a person reads them."""
    if count is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}" if count < 100 * scale else f"{count / scale:,.0f} {unit}"
    return f"{count / 1e3:.3g} kB"
