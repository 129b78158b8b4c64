"""The error for anything that the user can fix."""

import difflib
from collections.abc import Iterable

# Exit codes of commands, besides 0 (success), 1 (something failed), 2 (bad input) and 128 + n (signal n).
DAMAGE_SET_ASIDE = 3  # finished, but something was damaged, was named and was set aside or left out
DIVERGED = 4  # training diverged


def plain(text: str) -> str:
    """Return text on one line that changes nothing in a terminal, whatever a file or a server put into it."""
    shown = (each if each.isprintable() else " " if each in "\t\r\n" else ascii(each)[1:-1] for each in text)
    return "".join(shown)


class InputError(ValueError):
    """The input cannot be used; the message is one line that says what was given, what is allowed and what to do."""

    def __init__(self, message: str):
        super().__init__(plain(message))


def unknown_name(what: str, name: str, known: Iterable[str], advice: str = "") -> InputError:
    """Return the error for a name that nobody knows; it names the nearest one that is known.

    Args:
        what: What the name stands for, such as "algorithm".
        name: The name that was given.
        known: All names that would be right.
        advice: A last sentence, such as where all names are listed.
    """
    nearest = difflib.get_close_matches(name, list(known), 1, cutoff=0)
    meant = f"; did you mean {nearest[0]}?" if nearest else ";"
    return InputError(f"unknown {what} {name!r}{meant}" + (f" {advice}" if advice else ""))
