import dataclasses

import numpy as np
import pytest
from random_experts import random_expert

from drol.tasks.ogbench.collecting.recipes import RECIPES
from drol.tasks.ogbench.collecting.soccer import is_stuck, next_place, place_to_run_to, play_soccer
from drol.tasks.ogbench.environment import make_ogbench

WALKER, DRIBBLER = random_expert((29, 8)), random_expert((42, 8), input="ogbench-ball")


@pytest.fixture(scope="module")
def arena():
    environment = make_ogbench("antsoccer-arena-v0")
    yield environment
    environment.close()


@pytest.mark.parametrize("dribbler", [None, DRIBBLER], ids=["walker alone", "with dribbler"])
@pytest.mark.parametrize("kind", ["navigate", "stitch"])
def test_a_trajectory_depends_on_its_seed_alone(arena, kind, dribbler):
    recipe = dataclasses.replace(RECIPES[f"antsoccer-arena-{kind}-v0"], rows=20)
    first, second, again = (
        play_soccer(arena, np.random.SeedSequence((0, number)), recipe, WALKER, dribbler) for number in (0, 1, 0)
    )
    for key in first:
        np.testing.assert_array_equal(first[key], again[key], err_msg=key)
    assert not np.array_equal(first["observations"], second["observations"])
    assert first["observations"].shape == (20, 42)
    assert first["actions"].shape == (20, 8)
    np.testing.assert_array_equal(first["observations"][:, :22], first["qpos"])


def test_stitched_trajectories_walk_or_start_at_the_ball(arena):
    recipe = dataclasses.replace(RECIPES["antsoccer-arena-stitch-v0"], rows=2)
    starts = [
        play_soccer(arena, np.random.SeedSequence((0, number)), recipe, WALKER, DRIBBLER)["qpos"][0]
        for number in range(20)
    ]
    together = [np.linalg.norm(qpos[:2] - qpos[15:17]) < 2.9 for qpos in starts]  # both in one cell of side 4, jittered
    assert 0 < sum(together) < 20


def test_an_expert_that_sees_the_observation_needs_nothing_else(arena):
    recipe = dataclasses.replace(RECIPES["antsoccer-arena-navigate-v0"], rows=3)
    own = random_expert((42, 8), input="observation")
    assert play_soccer(arena, np.random.SeedSequence((0, 0)), recipe, own, None)["actions"].shape == (3, 8)


def test_an_ant_is_stuck_when_it_stays_in_a_small_disc():
    still = [np.zeros(2)] * 152
    assert is_stuck(still)
    assert not is_stuck(still[:151])
    assert not is_stuck([*still, np.full(2, 5.0)])


def test_a_far_goal_is_brought_within_reach(arena):
    maze, ball = arena.unwrapped, np.array([1.0, 1.0])
    np.testing.assert_allclose(next_place(maze, ball, np.array([1.0, 8.0])), [1, 8])
    np.testing.assert_allclose(next_place(maze, ball, np.array([1.0, 21.0])), [1, 11])


def test_a_walker_runs_through_the_ball_only_from_behind():
    ball, goal = np.zeros(2), np.array([5.0, 0.0])
    np.testing.assert_allclose(place_to_run_to(np.array([-1.0, 0.0]), ball, goal), [1, 0], atol=1e-5)
    np.testing.assert_allclose(place_to_run_to(np.array([1.0, 0.0]), ball, goal), [-1, 0], atol=1e-5)
