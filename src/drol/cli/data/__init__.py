"""`drol data <command>`: each command is a module, imported when it is used."""

import difflib
import importlib

from drol.errors import InputError

COMMANDS = {
    "list": ("drol.cli.data.list", "every dataset: its size, whether it is here, how it is got"),
    "show": ("drol.cli.data.show", "draw the data of a task: returns, lengths, actions, a map for mazes"),
    "download": ("drol.cli.data.download", "fetch the published files of a dataset"),
    "collect": ("drol.cli.data.collect", "make a dataset of OGBench or D4RL with oracles or an expert policy"),
    "expert": ("drol.cli.data.expert", "make a policy folder of a file of weights, for collect --expert"),
    "import": ("drol.cli.data.import_files", "make a dataset of your own files: npz, HDF5, Parquet or CSV"),
    "check": ("drol.cli.data.check", "say what a dataset or a file holds, how it is understood and what looks wrong"),
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
