"""`drol <command>`: find the command, run it, turn what went wrong into one line."""

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import drol
from drol.cli import IMPORTED
from drol.errors import InputError, unknown_name

Commands = Mapping[str, tuple[str, str]]  # name -> the module whose `run` it is, what it does

COMMANDS: Commands = {
    "demo": ("drol.cli.demo", "train DROL in a maze for a few minutes and make a report to look at"),
    "train": ("drol.cli.train", "train an algorithm on a task; the same command again goes on where it stopped"),
    "evaluate": ("drol.cli.evaluate", "run episodes with the policy of a run, or judge it by data alone"),
    "report": ("drol.cli.report", "make the page of a run again"),
    "algorithms": ("drol.cli.algorithms", "list the algorithms; show one with its settings for each task"),
    "bench": ("drol.cli.bench", "how fast every method is on this machine, and against other code"),
    "sweep": ("drol.cli.sweep", "many runs from one file: grids, draws, successive halving; done, watched, compared"),
    "compare": ("drol.cli.compare", "runs against each other: curves, means, intervals, better or worse"),
    "results": ("drol.cli.results", "results of runs in one file: export, merge, check"),
    "paper": ("drol.cli.paper", "the paper's tables, figures and propositions, computed"),
    "data": ("drol.cli.data", "list, show, download, collect, import and check datasets"),
}


def list_commands(commands: Commands) -> str:
    """Return a line for each command, for a help text."""
    width = max(map(len, commands))
    return "\n".join(f"  {name:{width}s}  {text}" for name, (_, text) in commands.items())


HELP = f"""usage: drol <command> [options]

{drol.__doc__}

commands:
{list_commands(COMMANDS)}

first steps:
  drol demo                                train in a maze, look at what was learned
  drol train --preset laptop --seeds 0 1   small networks, two seeds at once
  drol train --help                        every hyperparameter, with the paper's symbols
  drol algorithms show fql                 equations, hyperparameters, settings for each task
  drol evaluate runs/... --best-of 16      let the critic choose among 16 actions

--import MODULE, with any command, first imports a module of yours that registers algorithms or tasks.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 for success, 2 for bad input, 1 for anything else that failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"drol {drol.__version__}")
        return 0
    try:
        return dispatch(COMMANDS, import_modules(arguments), "drol", HELP)
    except InputError as error:
        return complain(error, 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        return complain("interrupted", 130)


def dispatch(commands: Commands, arguments: list[str], prefix: str, usage: str) -> int:
    """Run the command that the first argument names; its module is imported now."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage, end="")
        return 0
    name, *rest = arguments
    if name not in commands:
        raise unknown_name(f"command of `{prefix}`", name, commands, f"`{prefix} --help` lists them all")
    return importlib.import_module(commands[name][0]).run(rest)


def import_modules(arguments: list[str]) -> list[str]:
    """Import what each `--import MODULE` names, from this folder too; return the other arguments."""
    rest, waiting = [], iter(arguments)
    for argument in waiting:
        if argument != "--import" and not argument.startswith("--import="):
            rest.append(argument)
            continue
        name = argument.removeprefix("--import=") if "=" in argument else next(waiting, "")
        if not name or name.startswith("-"):
            raise InputError("--import needs the name of a module, such as my_module")
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise InputError(f"--import {name}: there is no module {error.name!r} here or installed") from error
        except InputError:
            raise
        except Exception as error:
            words = " ".join(str(error).split())
            raise InputError(f"--import {name} raised {type(error).__name__}: {words}") from error
        IMPORTED.append(name)
    return rest


def complain(message: object, code: int) -> int:
    """Print an error in one line and return the exit code."""
    print(f"drol: error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
