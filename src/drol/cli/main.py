"""`drol <command>`: find the command, run it, print errors as one line."""

import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

import drol
from drol.cli import IMPORTED
from drol.errors import InputError, plain, unknown_name
from drol.storage import describe_fault

Commands = Mapping[str, tuple[str, str]]  # name -> module with its `run`, help text

COMPANION = "drol_reproduction"  # its own distribution, in reproduction/ of the checkout

GROUPS: Mapping[str, Commands] = {
    "train": {
        "demo": ("drol.cli.demo", "train DROL in a maze for a few minutes and write a report"),
        "train": ("drol.cli.train", "train an algorithm on a task; the same command resumes a stopped run"),
        "sweep": ("drol.cli.sweep", "train many runs from one file: grids, random search, successive halving"),
        "execute": ("drol.cli.execute", "execute one run from the file that a sweep or `drol paper run` wrote"),
        "algorithms": ("drol.cli.algorithms", "list the algorithms; show one with its settings for each task"),
    },
    "evaluate": {
        "evaluate": ("drol.cli.evaluate", "evaluate a run's policy in its simulator or on held-out data"),
        "report": ("drol.cli.report", "write a page about one or more runs: curves, comparison, actions"),
        "watch": ("drol.cli.watch", "show runs and sweeps in a browser while they train"),
        "compare": ("drol.cli.compare", "compare runs: means, confidence intervals, verdicts, curves"),
        "choose": ("drol.cli.choose", "rank checkpoints, seeds and runs, and show the evidence"),
        "results": ("drol.cli.results", "export, merge and check the results of runs in one file"),
    },
    "data": {
        "data": ("drol.cli.data", "list, show, download, collect, import and check datasets"),
    },
    "deploy": {
        "export": ("drol.cli.export", "write a trained policy as files that run without jax"),
        "serve": ("drol.cli.serve", "answer HTTP requests with the actions of an exported policy"),
    },
    "reproduce": {
        "paper": (f"{COMPANION}.cli", "compute the paper's tables, figures and propositions"),
        "bench": (f"{COMPANION}.cli.bench", "measure the speed of every method on this machine"),
        "doctor": ("drol.cli.doctor", "check the installation and this machine"),
    },
}
COMMANDS: Commands = {name: command for group in GROUPS.values() for name, command in group.items()}


NEW_LINE, BLANK_LINE, WIDTH = "\n", "\n\n", max(map(len, COMMANDS))


def list_commands(commands: Commands, width: int = 0) -> str:
    """Return a line for each command, for a help text; names are padded to `width` or to the longest."""
    width = width or max(map(len, commands))
    return NEW_LINE.join(f"  {name:{width}s}  {text}" for name, (_, text) in commands.items())


HELP = f"""usage: drol <command> [options]

{drol.__doc__}

{BLANK_LINE.join(f"{group}:{NEW_LINE}{list_commands(commands, WIDTH)}" for group, commands in GROUPS.items())}

first steps:
  drol demo                                train in a maze and open the report
  drol train --preset laptop --seeds 0 1   small networks, two seeds at once
  drol train --help                        every setting with its default and the paper's symbol
  drol algorithms show fql                 equations, hyperparameters, settings for each task
  drol evaluate runs/... --best-of 16      let the critic choose among 16 actions

Every command accepts --import MODULE, which imports your module that registers algorithms or tasks.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 for success, 2 for bad input, 128 + n after signal n, 1 for all else that failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"drol {drol.__version__}")
        return 0
    with printed_messages(), noted_signals() as noted:
        try:
            return dispatch(COMMANDS, import_modules(arguments), "drol", HELP)
        except BaseException as error:
            if noted:  # even if a library turned the interrupt into another error
                return complain("interrupted", 128 + noted[0])
            return answer(error)


class LineHandler(logging.Handler):
    """Print each message on one line of stderr, each warning once, above the bar of `drol.progress`."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = plain(record.getMessage())
        if record.levelno < logging.WARNING:
            print(text, file=sys.stderr)
        elif text not in self.warnings:
            self.warnings.add(text)
            print(f"drol: warning: {text}", file=sys.stderr)


@contextlib.contextmanager
def printed_messages() -> Iterator[None]:
    """Print what drol and its companion log while a command runs."""
    loggers, handler = [logging.getLogger(name) for name in ("drol", COMPANION)], LineHandler()
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


def answer(error: BaseException) -> int:
    """Print an error in one line and return the exit code; re-raise unexpected errors."""
    match error:
        case InputError():
            return complain(error, 2)
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        case OSError():
            return complain(describe_fault(error), 1)
        case KeyboardInterrupt():
            return complain("interrupted", 128 + signal_of(error))
        case MemoryError():
            return complain(f"not enough memory ({error}); use smaller networks or batches", 1)
    raise error


@contextlib.contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Record stop signals and raise `KeyboardInterrupt`, so that context managers clean up.

    The record is needed because some libraries, such as NumPy, turn a `KeyboardInterrupt` into another error. If the
    signal arrives inside a callback that swallows exceptions (such as jax's hook in the garbage collector), it is sent
    again.
    """
    noted: list[int] = []
    hook = sys.unraisablehook

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt(number)

    def send_again(ignored: "sys.UnraisableHookArgs") -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            threading.Timer(0.05, os.kill, (os.getpid(), signal_of(ignored.exc_value))).start()
        else:
            hook(ignored)

    with handled_by(note):
        sys.unraisablehook = send_again
        try:
            yield noted
        finally:
            sys.unraisablehook = hook


def signal_of(interrupt: KeyboardInterrupt) -> int:
    """Return the signal that raised an interrupt."""
    return interrupt.args[0] if interrupt.args else signal.SIGINT


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle stop signals; ignored signals stay ignored, as under `nohup`."""
    previous = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        if signal.getsignal(number) != signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # signals are handled in the main thread only
                previous[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def leave(number: int, _: FrameType | None) -> None:
    """Exit at once: during an import, an exception would look like an error of the imported module."""
    os.write(2, b"drol: error: interrupted\n")
    os._exit(128 + number)


def dispatch(commands: Commands, arguments: list[str], prefix: str, usage: str) -> int:
    """Import and run the command that the first argument names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage, end="")
        return 0
    name, *rest = arguments
    if name not in commands:
        raise unknown_name(f"command of `{prefix}`", name, commands, f"`{prefix} --help` lists them all")
    with handled_by(leave):
        try:
            module = importlib.import_module(commands[name][0])
        except ModuleNotFoundError as error:
            if error.name != COMPANION:
                raise
            message = f"`{prefix} {name}` needs {COMPANION}; install it from a checkout: pip install ./reproduction"
            raise InputError(message) from error
    return module.run(rest)


def import_modules(arguments: list[str]) -> list[str]:
    """Import the module of each `--import MODULE`, also from this folder; return the other arguments."""
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
            raise InputError(f"--import {name}: module {error.name!r} is neither here nor installed") from error
        except InputError:
            raise
        except Exception as error:
            words = " ".join(str(error).split())
            raise InputError(f"--import {name} raised {type(error).__name__}: {words}") from error
        IMPORTED.append(name)
    return rest


def complain(message: object, code: int) -> int:
    """Print an error in one line and return the exit code."""
    print(f"drol: error: {plain(str(message))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
