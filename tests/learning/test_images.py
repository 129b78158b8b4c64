"""The action must be read from pictures: stripes move to the left or right, which only two frames in order tell."""

import jax
import numpy as np
import pytest
from fake_environments import Stripes

from drol.algorithms.bc import BC
from drol.algorithms.drol import DROL
from drol.data.dataset import Dataset
from drol.data.standardisation import Standardisation
from drol.policy import Policy
from drol.tasks.frames import stack_frames
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals

EPISODES, UPDATES = 64, 30
SMALL = {"hidden_sizes": (32,), "batch_size": 16, "learning_rate": 1e-3}
ALGORITHMS = {"bc": BC(**SMALL), "drol": DROL(**SMALL, num_candidates=4, bc_weight=10.0)}


def demonstrations(frame_stack: int) -> Dataset:
    """Episodes in which the action is the direction, as pictures with crops."""
    observations, actions, last = [], [], []
    for seed in range(EPISODES):
        environment = Stripes()
        picture, _ = environment.reset(seed=seed)
        done = False
        while True:
            observations.append(picture)
            actions.append([0.8 * environment.direction, 0.0])
            last.append(done)
            if done:
                break
            picture, _, _, done, _ = environment.step(np.zeros(2))
    rows = len(last)
    return Dataset.from_rows(
        np.stack(observations), np.asarray(actions), np.zeros(rows), np.ones(rows), np.asarray(last),
        frame_stack=frame_stack, crop_probability=0.5,
    )  # fmt: skip


def share_of_right_actions(policy: Policy, frame_stack: int) -> float:
    """The score over new episodes; no policy can know the first step."""
    right = []
    for seed in range(1000, 1020):
        environment = stack_frames(Stripes(), frame_stack)
        observation, _ = environment.reset(seed=seed)
        done = False
        while not done:
            action = policy.act(observation, seed)
            observation, _, _, done, info = environment.step(action)
            right.append(info["success"] and environment.steps > 1)
    return sum(right) / (len(right) * 5 / 6)


def trained(algorithm, frame_stack: int) -> Policy:
    dataset, keys = demonstrations(frame_stack), seed_keys((0,))
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    states, _ = train_chunk(algorithm, states, totals, dataset, keys, 1, UPDATES)
    networks = jax.tree.map(lambda leaf: leaf[0], states.policy)
    return Policy(algorithm, networks, Standardisation.identity(dataset.spec))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_direction_is_read_from_two_pictures(name):
    assert share_of_right_actions(trained(ALGORITHMS[name], 2), 2) > 0.95


@pytest.mark.slow
def test_one_picture_does_not_tell_the_direction():
    """So that the test above is known to need the order of frames."""
    assert share_of_right_actions(trained(ALGORITHMS["bc"], 1), 1) < 0.8
