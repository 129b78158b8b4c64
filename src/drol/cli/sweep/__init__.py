"""`drol sweep <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

COMMANDS: Commands = {
    "new": ("drol.cli.sweep.new", "write a sweep to begin with, with comments; it runs as it is"),
    "run": ("drol.cli.sweep.run_sweep", "do the runs that it still lacks; the same command again goes on"),
    "status": ("drol.cli.sweep.status", "what is done, runs, failed and why, and what is best; a page of it"),
    "stop": ("drol.cli.sweep.stop", "let the runs of a sweep that runs elsewhere save and stop"),
    "retry": ("drol.cli.sweep.retry", "try runs again that failed, and do the rest"),
    "results": ("drol.cli.sweep.results", "the results of its runs, as a table or in a file"),
}

USAGE = f"""usage: drol sweep <command> FILE [options]

commands:
{list_commands(COMMANDS)}

`drol sweep <command> --help` explains one; docs/sweeps.md explains the file.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol sweep", USAGE)
