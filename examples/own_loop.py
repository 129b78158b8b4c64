"""Train by calling `algorithm.update` in your own loop: no run folder and no evaluation, only JAX."""

import jax
import numpy as np

import drol


def main(updates: int = 500) -> float:
    """Train DROL on data that has two modes, and return its cloning loss; the mean action would have a loss of 0.64."""
    generator = np.random.default_rng(0)
    observation = generator.uniform(-1, 1, (1000, 2))
    action = generator.choice([-0.8, 0.8], (1000, 1))
    terminal = np.arange(1000) % 10 == 9  # episodes of ten steps
    data = drol.Dataset.from_arrays(observation, action, np.zeros(1000), terminal, ends="terminal")

    algorithm = drol.DROL(bc_weight=10.0, hidden_sizes=(64, 64), learning_rate=1e-3)
    state = algorithm.init(jax.random.key(0), data.spec)

    @jax.jit
    def train_step(state, key):
        batch_key, update_key = jax.random.split(key)
        return algorithm.update(state, data.sample(batch_key, algorithm.batch_size), update_key)

    metrics = {}
    for key in jax.random.split(jax.random.key(1), updates):
        state, metrics = train_step(state, key)
    print("one action:", algorithm.act(state.policy, data.observation[0], jax.random.key(2)))
    return float(metrics["routed_bc_loss"])


if __name__ == "__main__":
    print(f"cloning loss: {main():.3f}")
