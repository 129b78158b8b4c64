"""Load the update of other code from a function `module:function`, to compare its speed."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from drol.errors import InputError
from drol_reproduction.bench.timers import Timer, call_timer


class Against(NamedTuple):
    """The update of other code."""

    place: str  # module:function
    name: str
    update: Callable[[], Any]  # runs one update and waits for its end


def load_against(place: str) -> Against:
    """Call the function `module:function` without arguments; it returns the update, or (update, name)."""
    module_name, separator, function_name = place.partition(":")
    if not (module_name and separator and function_name):
        raise InputError(f"--against is {place!r}; it must be module:function, as in their_code:make_update")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        made = getattr(importlib.import_module(module_name), function_name)()
    except ModuleNotFoundError as error:
        raise InputError(f"--against {place}: module {error.name!r} is neither here nor installed") from error
    except Exception as error:
        raise InputError(f"--against {place} raised {in_one_line(error)}") from error
    update, name = made if isinstance(made, tuple) and len(made) == 2 else (made, place)
    if not callable(update):
        raise InputError(f"--against {place} returned {type(update).__name__}; it must be a callable that updates once")
    return Against(place, str(name), update)


def against_timer(against: Against) -> Timer:
    """Return a timer of one update of the other code; it waits for the result if that is a jax value."""

    def once() -> None:
        try:
            jax.block_until_ready(against.update())
        except Exception as error:
            raise InputError(f"the update of --against {against.place} raised {in_one_line(error)}") from error

    return call_timer(once)


def in_one_line(error: BaseException) -> str:
    """Return the type and the message of an error."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
