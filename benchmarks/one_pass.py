"""DROL with every candidate and its critics evaluated and differentiated, to compare with DROL's two passes:

drol bench --methods drol --parts speed --against benchmarks.one_pass:make_update
"""

import sys
from collections.abc import Callable
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from one_pass import one_pass_step

from drol.algorithms.drol import DROL
from drol.data.random_dataset import random_dataset
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.updates import Updates


class OnePassDROL(DROL):
    """DROL by the plain formulation of the tests."""

    def step(self, state, batch, draws):
        return one_pass_step(self, state, batch, draws)


def make_update() -> tuple[Callable[[], None], str]:
    """Return a function that makes one update at the paper's size, and a name for it."""
    algorithm, dataset, keys = OnePassDROL(), random_dataset(), seed_keys((0,))
    states = init_seeds(algorithm, keys, dataset.spec)
    trained = [states, zero_totals(algorithm, states, dataset, keys)]
    updates = Updates(algorithm, dataset, keys, last_step=1)

    def update() -> None:
        trained[:] = jax.block_until_ready(updates.run(*trained, 1, 1))

    return update, "DROL in one pass"
