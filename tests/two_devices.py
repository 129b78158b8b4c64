"""Tests run this file in a separate process with two virtual devices; it trains on one and on both.

Prints, for each number of seeds, what was spread and the largest difference of any trained array; then how often the
compiled program of a split batch adds numbers up over devices.
"""

import json

import jax
import numpy as np
from toys import SPEC, random_rows

from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals
from drol.training.placement import Placement, place
from drol.training.updates import Updates

ALGORITHM = DROL(hidden_sizes=(16, 16), num_candidates=4, batch_size=32)
DATASET = Dataset.from_rows(**random_rows([50, 100, 50]))


def trained(placement: Placement, seeds: tuple[int, ...]):
    keys = seed_keys(seeds)
    states = init_seeds(ALGORITHM, keys, SPEC)
    carry = map(placement.put_seeds, (states, zero_totals(ALGORITHM, states, DATASET, keys)))
    updates = Updates(ALGORITHM, DATASET, keys, 10, placement)
    carry = updates.run(*updates.run(*carry, 1, 3), 4, 10)
    return placement.gather(carry[0])


def sums_over_devices(placement: Placement) -> int:
    keys = seed_keys((0,))
    states = init_seeds(ALGORITHM, keys, SPEC)
    carry = placement.put_seeds((states, zero_totals(ALGORITHM, states, DATASET, keys)))
    everywhere = placement.put_everywhere((DATASET, keys))

    def chunk(states, totals, dataset, keys):
        return train_chunk.__wrapped__(ALGORITHM, states, totals, dataset, keys, 1, 2, placement.batch_sharding)

    return jax.jit(chunk).lower(*carry, *everywhere).compile().as_text().count("all-reduce(")


def main() -> None:
    found = {}
    for seeds in ((0,), (0, 1)):
        two = place(len(seeds), ALGORITHM.batch_size, 2)
        arrays = [jax.tree.leaves(trained(each, seeds)) for each in (place(len(seeds), ALGORITHM.batch_size, 1), two)]
        difference = max(np.abs(np.asarray(one) - np.asarray(other)).max() for one, other in zip(*arrays, strict=True))
        found[len(seeds)] = [two.spread, float(difference)]
    print(json.dumps({"found": found, "sums": sums_over_devices(place(1, ALGORITHM.batch_size, 2))}))


if __name__ == "__main__":
    main()
