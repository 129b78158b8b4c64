"""A walk that breaks when it is told to. No jax here, because every process of an evaluator imports this."""

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
    """The first environment that finds an order carries it out in the middle of its episode; the others go on."""

    def step(self, action):
        order = take_order(Path(os.environ.get(ORDERS, "none")))
        if order:
            ACTIONS[order]()
        return super().step(action)


def take_order(path: Path) -> str | None:
    """Return an order that nobody else has taken."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.rename(own)
    except OSError:
        return None
    order = own.read_text()
    own.unlink()
    return order
