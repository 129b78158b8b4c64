"""Write the reference pages: the docstring of every public name and the --help of every command."""

import contextlib
import importlib
import io
import os
import re

import drol
from drol.algorithms import ALGORITHMS
from drol.cli.main import COMMANDS, main

TITLES = {
    "training": "Train",
    "runs": "Runs",
    "policy": "Policies",
    "evaluation": "Evaluate",
    "results": "Compare and choose",
    "reports": "Report",
    "algorithms": "Algorithms",
    "tasks": "Tasks",
    "data": "Data",
    "export": "Deploy",
    "presets": "Settings",
    "transition": "Batches and specs",
    "installation": "Installation",
    "errors": "Errors",
}


def packages() -> dict[str, list[str]]:
    """Return the public names by package of drol, in the order of `TITLES`."""
    found: dict[str, list[str]] = {}
    for name, module in drol.PUBLIC.items():
        found.setdefault(module.split(".")[1], []).append(name)
    order = [*(part for part in TITLES if part in found), *(part for part in found if part not in TITLES)]
    return {part: sorted(found[part], key=str.lower) for part in order}


def name_page(part: str) -> str:
    """Return the page of one package: a heading and the docstring of every public name."""
    title = TITLES.get(part, part.capitalize())
    blocks = [f"# {title}"]
    for name in packages()[part]:
        value = getattr(drol, name)
        if isinstance(value, dict):
            blocks.append(f"## `drol.{name}`\n\nEvery algorithm by name: {', '.join(map(code, value))}.")
        elif value in ALGORITHMS.values():
            page = next(key for key, kind in ALGORITHMS.items() if kind is value)
            blocks.append(
                f"::: drol.{name}\n    options:\n      members: false\n\n"
                f"[Its page](../methods/{page}.md) has its hyperparameters and what they mean."
            )
        else:
            blocks.append(f"::: drol.{name}")
    return "\n\n".join(blocks)


def code(text: str) -> str:
    return f"`{text}`"


def commands_of(name: str) -> list[str]:
    """Return a command and its subcommands."""
    module = importlib.import_module(COMMANDS[name][0])
    below = getattr(module, "COMMANDS", {})
    return [name, *(f"{name} {each}" for each in below)]


def command_page(name: str) -> str:
    """Return the page of a command: its --help and the --help of every subcommand."""
    blocks = [f"# drol {name}"]
    for command in commands_of(name):
        if command != name:
            blocks.append(f"## drol {command}")
        blocks.append(f"```text\n{help_text(command)}\n```")
    return "\n\n".join(blocks)


def help_text(command: str) -> str:
    """Return what `drol COMMAND --help` prints on a terminal of 100 columns."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*command.split(), "--help"])
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return re.sub(r"[ \t]+$", "", printed.getvalue(), flags=re.MULTILINE).strip()
