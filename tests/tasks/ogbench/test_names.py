import re
import tempfile

import numpy as np
import ogbench
import pytest

from drol.errors import InputError
from drol.tasks import DEFAULT_TASK, find_source, load_task
from drol.tasks.base import Episode, success_rate
from drol.tasks.ogbench import SOURCE
from drol.tasks.ogbench.environment import make_ogbench
from drol.tasks.ogbench.names import EMBEDDED, ENVIRONMENTS, all_names, find_dataset, row_bytes


@pytest.fixture(scope="module")
def task():
    return load_task(DEFAULT_TASK)


@pytest.fixture(scope="module")
def official():
    """Return the embedded file as loaded by the ogbench package: training and validation part, with positions."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(tempfile, "tempdir", folder)  # it leaves a model file behind
        environment, train, validation = ogbench.make_env_and_datasets(
            DEFAULT_TASK, dataset_path=str(EMBEDDED / "pointmaze-medium-navigate-v0.npz"), add_info=True
        )
        environment.close()
    return train, validation


def test_the_embedded_task_has_a_hundred_thousand_transitions(task):
    assert task.train.size == 100_000
    assert task.validation.size == 10_000
    assert task.train.spec.observation_shape == (2,)
    assert task.train.spec.action_size == 2
    assert (task.name, task.score_name) == (DEFAULT_TASK, "success (%)")
    assert task.environment_modules == ("gymnasium", "mujoco", "ogbench")


@pytest.mark.parametrize("part", ["train", "validation"])
def test_transitions_are_those_that_ogbench_reads(task, official, part):
    dataset, expected = (task.train, official[0]) if part == "train" else (task.validation, official[1])
    found = dataset.take(np.arange(dataset.size))
    np.testing.assert_array_equal(found.observation, expected["observations"])
    np.testing.assert_array_equal(found.next_observation, expected["next_observations"])
    np.testing.assert_array_equal(found.reward, expected["rewards"])
    np.testing.assert_array_equal(found.continues, expected["masks"])
    np.testing.assert_array_equal(1 - np.asarray(found.next_action_known), expected["terminals"])
    limit = np.float32(1 - 1e-5)
    np.testing.assert_array_equal(found.action, np.clip(expected["actions"], -limit, limit))
    assert set(np.unique(found.reward)) == {-1.0, 0.0}


def test_the_environment_gives_the_rewards_of_the_data_when_its_states_are_replayed(task, official):
    expected = official[0]
    generator = np.random.default_rng(0)
    at_goal = np.flatnonzero(expected["rewards"] == 0)
    edge = at_goal[0] - 1  # the step into the goal is not rewarded yet
    rows = [*generator.choice(at_goal, 6, replace=False), edge, *generator.integers(0, len(expected["rewards"]), 13)]
    transitions = task.train.take(np.asarray(rows))
    environment = task.make_environment()
    environment.reset(seed=0)
    inner = environment.unwrapped
    for number, row in enumerate(rows):
        inner.set_state(expected["qpos"][row].astype(float), expected["qvel"][row].astype(float))
        observation, reward, terminated, _, info = inner.step(expected["actions"][row].astype(float))
        assert reward == transitions.reward[number]
        assert terminated == (transitions.continues[number] == 0) == bool(info["success"])
        np.testing.assert_allclose(observation, transitions.next_observation[number], rtol=0, atol=1e-3)
    environment.close()


def test_the_maze_is_that_of_the_environment(task):
    environment = task.make_environment()
    environment.reset(seed=0)
    inner = environment.unwrapped
    maze = task.maze
    np.testing.assert_array_equal(maze.walls, inner.maze_map == 1)
    assert maze.goal == tuple(inner.cur_goal_xy) == (20.0, 20.0)
    assert maze.start == (0.0, 0.0)
    assert maze.goal_radius == inner._goal_tol == 1.0
    row, column = 3, 4
    x, y = maze.unit * column - maze.offset[0], maze.unit * row - maze.offset[1]
    assert inner.xy_to_ij((x, y)) == (row, column)
    environment.close()


def test_other_goals_of_the_same_data_are_other_rewards(task):
    other = load_task(DEFAULT_TASK.replace("task1", "task3"))
    assert other.maze.goal == (4.0, 12.0)
    assert other.train.size == 100_000
    observation, reward = np.asarray(other.train.observation), np.asarray(other.train.reward)
    valid = ~np.asarray(other.train.last)
    inside = np.linalg.norm(observation - np.asarray([4.0, 12.0]), axis=-1) <= 1
    np.testing.assert_array_equal(reward[valid] == 0, inside[valid])
    default = load_task(DEFAULT_TASK.replace("-task1", ""))
    assert default.train.fingerprint() == task.train.fingerprint()  # the default task is the first


def test_no_model_file_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = make_ogbench("pointmaze-medium-singletask-task1-v0")
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() == str(tmp_path)
    environment.reset(seed=0)
    environment.close()


def test_the_names_are_those_that_ogbench_has_registered():
    from gymnasium.envs.registration import registry

    names = SOURCE.task_names()
    assert len(names) == len(set(names)) == (82 + 1) * 6  # OGBench's files and cube-octuple, five tasks and a default
    environments = {re.sub(r"-[a-z]+(?=-singletask)", "", name) for name in names}  # without the kind of data
    registered = {name for name in registry if "-singletask" in name and "humanoidmaze-teleport" not in name}
    assert environments == registered


def test_the_fifty_tasks_of_the_paper_are_there():
    navigate = ("antmaze-large", "antmaze-giant", "humanoidmaze-medium", "humanoidmaze-large", "antsoccer-arena")
    play = ("cube-single", "cube-double", "scene", "puzzle-3x3", "puzzle-4x4")
    pairs = [(name, "navigate") for name in navigate] + [(name, "play") for name in play]
    wanted = {f"{name}-{data}-singletask-task{number}-v0" for name, data in pairs for number in range(1, 6)}
    assert len(wanted) == 50
    assert wanted <= set(SOURCE.task_names())


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("pointmaze-medium-navigate-singletask-task9-v0", "pointmaze-medium-navigate-singletask-task"),
        ("pointmaze-medum-navigate-singletask-task2-v0", "pointmaze-medium-navigate-singletask-task2-v0"),
        ("antmaze-giant-explore-singletask-v0", "antmaze-large-explore-singletask-v0"),
    ],
)
def test_an_unknown_task_is_answered_with_the_nearest(name, nearest):
    with pytest.raises(InputError) as caught:
        load_task(name)
    assert str(caught.value).startswith(f"unknown task {name!r}; did you mean {nearest}")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="unknown task of OGBench"):
        SOURCE.load(name)
    with pytest.raises(InputError):
        find_source("")


def test_a_dataset_that_is_not_there_is_named_with_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError) as caught:
        load_task("antmaze-large-navigate-singletask-v0")
    message = str(caught.value)
    assert message.startswith(f"the dataset {tmp_path}/.ogbench/data/antmaze-large-navigate-v0.npz is not there; ")
    assert "`drol data download antmaze-large-navigate-v0`" in message
    collect = "`drol data collect antmaze-large-navigate-v0 --expert FOLDER` (about 16 min 30 s on one core)"
    assert collect in message
    assert "--dataset" in message
    assert "\n" not in message
    with pytest.raises(InputError) as caught:
        load_task("cube-single-play-singletask-task2-v0")
    assert "make one with `drol data collect cube-single-play-v0` (about 1 h 20 min on one core)" in str(caught.value)
    downloaded = tmp_path / ".ogbench" / "data" / "antmaze-large-navigate-v0.npz"
    downloaded.parent.mkdir(parents=True)
    downloaded.write_bytes(b"")
    assert find_dataset(all_names()["antmaze-large-navigate-singletask-task4-v0"]) == downloaded
    with pytest.raises(InputError) as caught:
        load_task("cube-octuple-play-singletask-v0")  # OGBench publishes no file of this dataset
    assert str(caught.value).endswith("cube-octuple-play-v0.npz is not there; name a file with --dataset")


def test_a_file_given_by_path_is_used_in_place_of_the_tasks_own(task, tmp_path):
    with np.load(EMBEDDED / "pointmaze-medium-navigate-v0.npz") as file:
        np.savez(tmp_path / "mine.npz", **{name: file[name][: 3 * 1001] for name in file})
    mine = load_task(DEFAULT_TASK, tmp_path / "mine.npz")
    assert mine.train.size == 3000
    assert mine.validation is None
    np.testing.assert_array_equal(mine.train.observation, np.asarray(task.train.observation)[:3003])


def test_the_score_is_the_share_of_successes_and_a_broken_episode_is_none():
    episodes = [Episode(0, -5.0, 5, True), Episode(1, -9.0, 9, False), Episode(2, 0.0, 0, False, "it broke")]
    assert success_rate(episodes) == pytest.approx(100 / 3)


def test_every_dataset_says_what_it_is_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    entries = {entry.name: entry for entry in SOURCE.datasets()}
    assert len(entries) == 83
    embedded = entries["pointmaze-medium-navigate-v0"]
    assert embedded.present
    assert embedded.ways[0] == "embedded"
    assert embedded.transitions == 100_000
    absent = entries["antmaze-large-navigate-v0"]
    assert (absent.transitions, absent.observation, absent.action) == (1_000_000, "29", 8)
    assert not absent.present
    assert absent.path == tmp_path / ".ogbench" / "data" / "antmaze-large-navigate-v0.npz"
    assert "download" in absent.ways
    assert absent.files == ("antmaze-large-navigate-v0.npz", "antmaze-large-navigate-v0-val.npz")
    assert len(absent.tasks) == 6
    absent.path.parent.mkdir(parents=True)
    absent.path.write_bytes(b"")
    assert absent.present
    assert "download" not in entries["cube-octuple-play-v0"].ways  # nothing is published under that name
    assert entries["visual-scene-play-v0"].observation == "64x64x3"
    assert sum(entry.transitions or 0 for entry in entries.values() if "puzzle-4x6" in entry.name) == 4 * 5_000_000


def test_the_memory_that_is_announced_is_what_is_taken(task):
    environment = ENVIRONMENTS["pointmaze-medium"]
    per_transition = task.train.nbytes / task.train.size  # a little more: the last row of each trajectory
    assert row_bytes((environment.observation,), environment.action) == pytest.approx(per_transition, rel=0.01)
