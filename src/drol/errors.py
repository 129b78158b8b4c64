"""The error that the user can fix, exit codes, and parts of messages."""

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator

# Exit codes of commands, besides 0 (success), 1 (something failed), 2 (bad input) and 128 + n (signal n).
CORRUPTED_FILES = 3  # finished, but corrupted files or rows were found and quarantined or skipped
DIVERGED = 4  # training diverged
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
FEW = 12  # names that an error message lists
SIMILAR = 0.63  # ratio of difflib from which a name is suggested for another one


def plain(text: str) -> str:
    """Return text on one line without control characters, so that untrusted text is safe to print."""
    shown = (each if each.isprintable() else " " if each in "\t\r\n" else ascii(each)[1:-1] for each in text)
    return "".join(shown)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 episode, 2 episodes."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class InputError(ValueError):
    """Invalid input. The message is one line: where, what is wrong, what to do."""

    def __init__(self, message: str):
        super().__init__(plain(message))


@contextlib.contextmanager
def naming_arguments() -> Iterator[None]:
    """Name the arguments of a Python function in an `InputError` that names flags: --next-state becomes next_state."""
    try:
        yield
    except InputError as error:
        raise InputError(FLAG.sub(lambda flag: flag[1].replace("-", "_"), str(error))) from error


def unknown_name(what: str, name: str, known: Iterable[str], advice: str = "") -> InputError:
    """Return the error for an unknown name; it suggests a similar known name if there is one.

    Args:
        what: The thing that has the name, such as "algorithm".
        name: The name that was given.
        known: All valid names.
        advice: A last sentence, such as where all names are listed.
    """
    names = list(known)
    message = f"unknown {what} {name!r}"
    if similar := similar_name(name, names):
        message += f"; did you mean {similar}?"
    elif not advice and len(names) <= FEW:
        message += f"; known: {', '.join(names)}"
    elif advice:
        message += "."
    return InputError(f"{message} {advice}" if advice else message)


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the user probably meant: ignoring case, similar, or with the same beginning."""
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lowered, 1, cutoff=SIMILAR)
    longer = [each for each in lowered if each.startswith(name.lower())]
    return next((lowered[each] for each in [*close, *longer]), None)
