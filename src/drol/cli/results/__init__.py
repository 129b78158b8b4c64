"""`drol results <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

COMMANDS: Commands = {
    "export": ("drol.cli.results.export", "write the results of runs to one CSV or Parquet file"),
    "merge": ("drol.cli.results.merge", "merge files of several machines; reject incompatible results"),
    "check": ("drol.cli.results.check", "find faults: invalid rows, contradictions, mixed data, missing seeds"),
}

USAGE = f"""usage: drol results <command> [options]

commands:
{list_commands(COMMANDS)}

`drol results <command> --help` explains one; docs/comparing.md explains the columns.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol results", USAGE)
