import functools

import jax
import jax.numpy as jnp

from drol.algorithms.bc import BC
from drol.data.random_dataset import random_dataset
from drol_reproduction.bench.operations import matmul_operations, update_operations


def test_products_are_counted_in_loops_branches_and_batches():
    a, b, square = jnp.ones((3, 5)), jnp.ones((5, 7)), jnp.ones((5, 5))
    assert matmul_operations(lambda a, b: a @ b + 1, a, b) == 2 * 3 * 5 * 7
    batched = functools.partial(jnp.einsum, "nij,njk->nik")
    assert matmul_operations(batched, jnp.ones((4, 3, 5)), jnp.ones((4, 5, 7))) == 4 * 2 * 3 * 5 * 7

    def nine_times(a, b):
        return jax.lax.scan(lambda x, _: (x @ b, None), a, None, 9)[0]

    assert matmul_operations(nine_times, a, square) == 9 * 2 * 3 * 5 * 5

    def either(a, b):
        return jax.lax.cond(a[0, 0] > 0, lambda: a @ b @ b, lambda: a @ b)

    assert matmul_operations(either, a, square) == 2 * 2 * 3 * 5 * 5


def test_operations_of_an_update_are_those_of_its_layers():
    forward = 2 * 4 * (3 * 8 + 8 * 8 + 8 * 2)
    input_gradient = 2 * 4 * (8 * 8 + 8 * 2)  # the first layer needs none
    dataset = random_dataset(rows=51, observation_size=3, action_size=2)
    assert update_operations(BC(hidden_sizes=(8, 8), batch_size=4), dataset) == 2 * forward + input_gradient
