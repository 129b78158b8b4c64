import dataclasses

import numpy as np
import pytest
from random_experts import random_expert

from drol.tasks.ogbench.environment import make_ogbench
from drol.tasks.ogbench.names import EMBEDDED
from drol.tasks.ogbench.recipes import RECIPES
from drol_reproduction.collecting.ogbench.mazes import cells_at_distance, free_cells, is_hallway, play_maze

NAME = "pointmaze-medium-navigate-v0"
MAZE = np.asarray(
    [
        [1, 1, 1, 1, 1],
        [1, 0, 0, 0, 1],
        [1, 0, 1, 0, 1],
        [1, 0, 1, 1, 1],
        [1, 1, 1, 1, 1],
    ]
)


def seed_of(number, seed=0):
    return np.random.SeedSequence((seed, number))


def short(name, rows):
    return dataclasses.replace(RECIPES[name], rows=rows)


@pytest.fixture(scope="module")
def environment():
    environment = make_ogbench("pointmaze-medium-v0")
    yield environment
    environment.close()


@pytest.fixture(scope="module")
def ant_maze():
    environment = make_ogbench("antmaze-medium-v0")
    yield environment
    environment.close()


@pytest.fixture(scope="module")
def embedded():
    """The shipped files, training and validation."""
    parts = []
    for name in (NAME, f"{NAME}-val"):
        with np.load(EMBEDDED / f"{name}.npz") as file:
            parts.append({each: file[each] for each in file})
    return parts


def assert_equal_rows(trajectory, stored, number):
    assert trajectory.keys() == stored.keys()
    rows = slice(1001 * number, 1001 * (number + 1))
    for name, array in trajectory.items():
        assert array.dtype == stored[name].dtype, name
        np.testing.assert_array_equal(array, stored[name][rows], err_msg=name)


def test_the_shipped_trajectories_are_those_that_the_command_collects(environment, embedded):
    train, validation = embedded
    assert len(train["observations"]) == 100 * 1001
    assert len(validation["observations"]) == 10 * 1001
    # In this order: a trajectory depends on its number alone, not on those collected before it.
    for number in (1, 0, 99):
        assert_equal_rows(play_maze(environment, seed_of(number), RECIPES[NAME]), train, number)
    assert_equal_rows(play_maze(environment, seed_of(100), RECIPES[NAME]), validation, 0)


def test_another_seed_is_another_trajectory(environment, embedded):
    other = play_maze(environment, seed_of(0, seed=1), RECIPES[NAME])
    assert not np.array_equal(other["observations"], embedded[0]["observations"][:1001])


def test_to_stitch_is_to_walk_to_one_place_four_cells_away_and_stay(environment):
    maze = environment.unwrapped
    for number in range(3):
        trajectory = play_maze(environment, seed_of(number), RECIPES["pointmaze-medium-stitch-v0"])
        assert len(trajectory["terminals"]) == 201
        start, end = (maze.xy_to_ij(trajectory["qpos"][row]) for row in (0, -1))
        goal = maze.xy_to_ij(maze.cur_goal_xy)
        assert goal in cells_at_distance(maze.maze_map, start, 4)
        assert end == goal


def test_to_explore_is_to_hold_a_direction_for_ten_steps(environment):
    recipe = dataclasses.replace(RECIPES[NAME], kind="explore", rows=40, noise=0.0)
    actions = play_maze(environment, seed_of(0), recipe)["actions"].reshape(4, 10, 2)
    np.testing.assert_array_equal(actions, np.broadcast_to(actions[:, :1], actions.shape))
    assert len(np.unique(actions[:, 0], axis=0)) == 4
    np.testing.assert_allclose(np.linalg.norm(actions, axis=-1), 1, atol=1e-5)


def test_the_noise_has_the_level_of_the_recipe(environment):
    quiet, loud = (
        play_maze(environment, seed_of(0), dataclasses.replace(RECIPES[NAME], kind="explore", rows=2, noise=noise))
        for noise in (0.0, 0.5)
    )
    np.testing.assert_array_equal(quiet["observations"][0], loud["observations"][0])
    assert not np.array_equal(quiet["actions"][0], loud["actions"][0])


@pytest.mark.parametrize(
    "name", ["antmaze-medium-navigate-v0", "antmaze-medium-stitch-v0", "antmaze-medium-explore-v0"]
)
def test_an_ant_follows_its_expert_and_depends_on_its_seed_alone(ant_maze, name):
    expert, recipe = random_expert((29, 8)), short(name, 30)
    first, second, again = (play_maze(ant_maze, seed_of(number), recipe, expert) for number in (0, 1, 0))
    for key in first:
        np.testing.assert_array_equal(first[key], again[key], err_msg=key)
    assert not np.array_equal(first["observations"], second["observations"])
    shapes = {"observations": (30, 29), "actions": (30, 8), "terminals": (30,), "qpos": (30, 15), "qvel": (30, 14)}
    assert {key: array.shape for key, array in first.items()} == shapes
    assert list(np.flatnonzero(first["terminals"])) == [29]
    np.testing.assert_array_equal(first["observations"], np.concatenate([first["qpos"], first["qvel"]], axis=1))


def test_the_episode_of_an_ant_on_its_back_does_not_end(ant_maze, monkeypatch):
    maze = ant_maze.unwrapped
    step, steps = maze.step, []

    def flip_at_the_fifth(action):
        steps.append(action)
        if len(steps) == 5:
            qpos = maze.data.qpos.copy()
            qpos[2:7] = (1, 0, 1, 0, 0)  # on its back
            maze.set_state(qpos, maze.data.qvel)
        return step(action)

    monkeypatch.setattr(maze, "step", flip_at_the_fifth)
    trajectory = play_maze(ant_maze, seed_of(0), short("antmaze-medium-navigate-v0", 30), random_expert((29, 8)))
    assert list(np.flatnonzero(trajectory["terminals"])) == [29]
    assert abs(trajectory["qpos"][5, 4]) > 0.9  # the quaternion of a torso that was turned over


def test_a_humanoid_is_collected_with_an_expert():
    environment = make_ogbench("humanoidmaze-medium-v0")
    trajectory = play_maze(
        environment, seed_of(0), short("humanoidmaze-medium-navigate-v0", 5), random_expert((69, 21))
    )
    environment.close()
    assert trajectory["observations"].shape == (5, 69)
    assert trajectory["actions"].shape == (5, 21)


def test_hallways_connect_two_opposite_neighbours_only():
    assert free_cells(MAZE) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 3), (3, 1)]
    # (1, 1) and (1, 3) are corners, (2, 3) and (3, 1) dead ends.
    assert [cell for cell in free_cells(MAZE) if is_hallway(MAZE, *cell)] == [(1, 2), (2, 1)]


def test_distances_go_around_walls():
    assert cells_at_distance(MAZE, (3, 1), 0) == [(3, 1)]
    assert cells_at_distance(MAZE, (3, 1), 2) == [(1, 1)]
    assert cells_at_distance(MAZE, (3, 1), 5) == [(2, 3)]
    assert cells_at_distance(MAZE, (3, 1), 6) == []
    assert cells_at_distance(MAZE, (1, 2), 1) == [(1, 1), (1, 3)]
