"""`drol algorithms` and `drol algorithms show`."""

import dataclasses
import difflib
import sys
import textwrap
from typing import Any

from drol.algorithms import Algorithm, find_algorithm, known_algorithms
from drol.bounds import allowed_words
from drol.cli.flags import Parser
from drol.errors import InputError
from drol.presets.settings import LAPTOP, PRESETS, FamilyRow, family_rows

WIDTH = 120


def run(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return run_list(arguments)
    command, *rest = arguments
    if command == "show":
        return run_show(rest)
    if command in known_algorithms():
        raise InputError(f"unknown command {command!r}; did you mean `drol algorithms show {command}`?")
    hint = "did you mean show?" if difflib.get_close_matches(command, ["show"]) else "the only command is show"
    raise InputError(f"unknown command {command!r} of `drol algorithms`; {hint}")


def run_list(arguments: list[str]) -> int:
    epilog = "`drol algorithms show NAME` prints its equations, hyperparameters and settings for each task."
    Parser("algorithms", "List the algorithms, one per line.", epilog).parse(arguments)
    known = known_algorithms()
    width = max(map(len, known)) + 2
    for name, kind in known.items():
        print(f"{name:{width}s}{first_line(kind)}".rstrip())
    return 0


def run_show(arguments: list[str]) -> int:
    parser = Parser(
        "algorithms show", "Show the equations, the hyperparameters and the settings for each task of an algorithm."
    )
    parser.add_argument("name", help=f"one of {', '.join(known_algorithms())}")
    name = parser.parse(arguments).name
    kind = find_algorithm(name)
    print(f"{name}: {first_line(kind)}\n")
    print((sys.modules[kind.__module__].__doc__ or "").strip())
    print("\nhyperparameters:")
    for field in dataclasses.fields(kind):
        print(describe(field))
    print("\nsettings for the tasks of the paper:")
    rows = family_rows(name)
    lines = [*settings_table(rows), *notes(name, rows)] if rows else without_settings(name, kind)
    print("\n".join(f"  {line}".rstrip() for line in lines))
    return 0


def first_line(kind: type[Algorithm]) -> str:
    return (kind.__doc__ or "").split("\n")[0]


def without_settings(name: str, kind: type[Algorithm]) -> list[str]:
    """Return the lines that replace the table for an algorithm outside the paper's tables."""
    lines = [f"none: {name} is not in the paper's tables; its default hyperparameters are used"]
    return [*lines, f"`--preset {LAPTOP}` uses small networks for it"] if LAPTOP in kind.presets else lines


def describe(field: dataclasses.Field) -> str:
    """Describe a hyperparameter: its default, its meaning and its allowed values."""
    words = f"{field.metadata['description']} ({allowed_words(field)})"
    head = f"  {field.name:20s}{show(field.default):10s}"
    return textwrap.fill(words, WIDTH, initial_indent=f"{head} ", subsequent_indent=" " * 33)


def show(value: Any) -> str:
    """Format a value briefly: 512x4 for four layers of 512."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple) and len(set(value)) == 1:
        return f"{value[0]}x{len(value)}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_table(rows: list[FamilyRow]) -> list[str]:
    """Return a line for each family or task, then the meaning of the marks."""
    names = list(dict.fromkeys(name for row in rows for name in columns(row)))
    cells = [["", "", *names, "steps"]]
    cells += [[row.benchmark, row.family, *(cell(row, name) for name in names), steps(row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{text:{width}s}" for text, width in zip(line, widths, strict=True)) for line in cells]
    marks = {"/": f"a/b/c/d: under the presets {', '.join(PRESETS)}", "(?)": "(?): read from the paper with doubt"}
    texts = [text for line in cells[1:] for text in line[2:]]
    meanings = [words for mark, words in marks.items() if any(mark in text for text in texts)]
    return [*lines, "", *meanings] if meanings else lines


def notes(algorithm: str, rows: list[FamilyRow]) -> list[str]:
    """Return the sources and the notes, each with the names of its rows."""
    about: dict[str, list[FamilyRow]] = {}
    for row in rows:
        every = row.settings.values()
        texts = (text for settings in every for text in (f"source: {settings.source}", *settings.notes))
        for text in dict.fromkeys(texts):
            about.setdefault(text, []).append(row)
    lines = [""]
    for text in sorted(
        about, key=lambda text: not text.startswith("source: ")
    ):  # sources first; otherwise keep the order
        where, words = place(about[text], rows), text.removeprefix(f"{algorithm}: ")
        lines += textwrap.wrap(f"{where}: {words}", WIDTH - 2, subsequent_indent="    ", break_on_hyphens=False)
    return lines


def place(some: list[FamilyRow], rows: list[FamilyRow]) -> str:
    """Name some of the rows; use the benchmark's name if all its rows are included."""
    names = []
    for benchmark in dict.fromkeys(row.benchmark for row in rows):
        here = [row.family for row in some if row.benchmark == benchmark]
        names += [benchmark] if len(here) == sum(row.benchmark == benchmark for row in rows) else here
    return ", ".join(names)


def columns(row: FamilyRow) -> list[str]:
    settings = row.settings[PRESETS[0]]
    return [*settings.unknown, *settings.hyperparameters]


def cell(row: FamilyRow, name: str) -> str:
    """Return the values under all presets; a single value if they agree."""
    texts = []
    for preset in PRESETS:
        settings = row.settings[preset]
        text = "unknown" if name in settings.unknown else show(settings.hyperparameters.get(name, "default"))
        texts.append(f"{text} (?)" if name in settings.doubtful else text)
    return texts[0] if len(set(texts)) == 1 else "/".join(texts)


def steps(row: FamilyRow) -> str:
    return f"{row.settings[PRESETS[0]].run['steps']:,}"
