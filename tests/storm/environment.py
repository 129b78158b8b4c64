"""A walk that breaks on command. This module does not import jax, because every evaluation process imports it."""

import os
import signal
import time
from pathlib import Path

from fake_environments import Walk

ORDERS = "DROL_STORM_ORDERS"  # names the file with the order
ACTIONS = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "hung": lambda: time.sleep(3600),
    "raises": lambda: 1 / 0,
}


class ObedientWalk(Walk):
    """The first environment that finds a command executes it in the middle of its episode; the others continue."""

    def step(self, action):
        order = take_order(Path(os.environ.get(ORDERS, "none")))
        if order:
            ACTIONS[order]()
        return super().step(action)


def take_order(path: Path) -> str | None:
    """Return a command that no other process has taken."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.rename(own)
    except OSError:
        return None
    order = own.read_text()
    own.unlink()
    return order
