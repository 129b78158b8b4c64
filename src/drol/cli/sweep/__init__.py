"""`drol sweep <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

COMMANDS: Commands = {
    "new": ("drol.cli.sweep.new", "write an example sweep file with comments, ready to run"),
    "run": ("drol.cli.sweep.run_sweep", "execute the missing runs; the same command resumes"),
    "status": ("drol.cli.sweep.status", "show finished, running and failed runs and the best choice; write a page"),
    "stop": ("drol.cli.sweep.stop", "stop a sweep of another process; its runs save a checkpoint first"),
    "retry": ("drol.cli.sweep.retry", "retry failed runs, then execute the missing ones"),
    "results": ("drol.cli.sweep.results", "print the results as a table, or write them to a file"),
}

USAGE = f"""usage: drol sweep <command> FILE [options]

commands:
{list_commands(COMMANDS)}

`drol sweep <command> --help` explains one; docs/sweeps.md explains the file.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol sweep", USAGE)
