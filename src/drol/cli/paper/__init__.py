"""`drol paper <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

COMMANDS: Commands = {
    "figure": ("drol.cli.paper.figure", "make a figure of the paper, computed"),
    "propositions": ("drol.cli.paper.propositions", "compute the paper's propositions; draw them"),
}

USAGE = f"""usage: drol paper <command> [options]

commands:
{list_commands(COMMANDS)}

`drol paper <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol paper", USAGE)
