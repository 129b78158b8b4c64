"""`drol <command>`: find the command, run it, turn what went wrong into one line."""

import difflib
import importlib
import os
import sys

import drol
from drol.errors import InputError

COMMANDS = {
    "demo": ("drol.cli.demo", "train DROL in a maze for a few minutes and make a report to look at"),
    "train": ("drol.cli.train", "train an algorithm on a task; the same command again goes on where it stopped"),
    "evaluate": ("drol.cli.evaluate", "run episodes with the policy of a run"),
    "report": ("drol.cli.report", "make the page of a run again"),
    "algorithms": ("drol.cli.algorithms", "list the algorithms; show one with its settings for each task"),
    "bench": ("drol.cli.bench", "how fast every method is on this machine, and against other code"),
    "data": ("drol.cli.data", "list, show, download, collect, import and check datasets"),
}

HELP = f"""usage: drol <command> [options]

{drol.__doc__}

commands:
{chr(10).join(f"  {name:10s} {text}" for name, (_, text) in COMMANDS.items())}

first steps:
  drol demo                                train in a maze, look at what was learned
  drol train --preset laptop --seeds 0 1   small networks, two seeds at once
  drol train --help                        every hyperparameter, with the paper's symbols
  drol algorithms show fql                 equations, hyperparameters, settings for each task
  drol evaluate runs/... --best-of 16      let the critic choose among 16 actions
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 for success, 2 for bad input, 1 for anything else that failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if arguments[0] == "--version":
        print(f"drol {drol.__version__}")
        return 0
    name, *rest = arguments
    try:
        if name not in COMMANDS:
            nearest = difflib.get_close_matches(name, COMMANDS, 1, cutoff=0)[0]
            raise InputError(f"unknown command {name!r}; did you mean {nearest}? `drol --help` lists them all")
        return importlib.import_module(COMMANDS[name][0]).run(rest)
    except InputError as error:
        return complain(error, 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        return complain("interrupted", 130)


def complain(message: object, code: int) -> int:
    print(f"drol: error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
