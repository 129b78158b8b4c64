"""`drol data list`."""

import json
from itertools import groupby

from drol.cli.flags import Parser
from drol.errors import counted, plain
from drol.machine import bytes_in_words
from drol.tasks.catalogue import find_datasets
from drol.tasks.source import DatasetEntry, TaskSource

EPILOG = """examples:
  drol data list                 every dataset, by source
  drol data list cube play       datasets whose names contain both words
  drol data list scene --all     their tasks, one per line
  drol data list --here --json   datasets on this machine, for programs"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "data list", "List every known dataset: size, whether it is on this machine, how to get it.", EPILOG
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="only names that contain every word")
    parser.add_argument("--all", action="store_true", help="one line for each task instead of each dataset")
    parser.add_argument("--here", action="store_true", help="only datasets on this machine")
    parser.add_argument("--json", action="store_true", help="as JSON, sizes in bytes")
    parsed = parser.parse(arguments)
    rows = find_datasets(parsed.words, parsed.here)
    if parsed.json:
        print(json.dumps([{"source": source.name, **entry.to_dict()} for source, entry in rows], indent=2))
    elif parsed.all:
        print_tasks([entry for _, entry in rows], parsed.words)
    else:
        print_datasets(rows)
    return 0


def print_tasks(entries: list[DatasetEntry], words: list[str]) -> None:
    for entry in entries:
        for task in entry.tasks:
            if all(word in task or word in entry.name for word in words):
                state = "damaged" if entry.damage else "here" if entry.present else "-"
                print(plain(f"{task:60s}  {state}"))


def print_datasets(rows: list[tuple[TaskSource, DatasetEntry]]) -> None:
    width = max((len(entry.name) for _, entry in rows), default=0)
    for source, group in groupby(rows, key=lambda row: row[0].name):
        entries = [entry for _, entry in group]
        tasks = sum(len(entry.tasks) for entry in entries)
        here = sum(entry.present for entry in entries)
        print(f"{source}: {counted(len(entries), 'dataset')}, {counted(tasks, 'task')}, {here} here")
        head = f"  {'dataset':{width}s}  {'transitions':>11s}  {'observation':>11s}  {'action':>6s}  {'memory':>8s}"
        print(f"{head}  {'here':8s}  how to get it")
        for entry in entries:
            ways = [way for way in entry.ways if way != "--dataset"] or entry.ways  # --dataset works for every dataset
            how = f"damaged: {entry.damage}" if entry.damage else ", ".join(ways) or "-"
            line = (
                f"  {entry.name:{width}s}  {f'{entry.transitions:,}' if entry.transitions else '-':>11s}"
                f"  {entry.observation or '-':>11s}  {entry.action or '-':>6}"
                f"  {bytes_in_words(entry.memory) if entry.memory else '-':>8s}"
                f"  {bytes_in_words(entry.file_bytes) if entry.present else '-':8s}  {how}"
            )
            print(plain(line))  # a registered source may contain control characters
        print()
    print("A dataset has several tasks: `drol data list WORD --all` names them.")
    print(
        "`drol data download NAME` downloads one, `drol data collect NAME` collects one, --dataset uses your own file."
    )
