"""`drol data <command>`: each command is a module, imported when it is used."""

import difflib
import importlib

from drol.errors import InputError

COMMANDS = {
    "list": ("drol.cli.data_list", "every task, by source"),
    "collect": ("drol.cli.data_collect", "make an OGBench dataset with the oracles of its package"),
}

USAGE = f"""usage: drol data <command> [options]

commands:
{chr(10).join(f"  {name:10s} {text}" for name, (_, text) in COMMANDS.items())}

`drol data <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, COMMANDS, 1, cutoff=0)[0]
        raise InputError(f"unknown command {name!r} of `drol data`; did you mean {nearest}?")
    return importlib.import_module(COMMANDS[name][0]).run(rest)
