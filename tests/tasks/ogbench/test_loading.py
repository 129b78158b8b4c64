"""Files of every family become the transitions, rewards and masks that the ogbench package makes of them."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import ogbench
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_files import shared

from drol.algorithms.drol import DROL
from drol.errors import InputError
from drol.runs.config import RunConfig
from drol.tasks import load_task
from drol.tasks.ogbench.environment import make_ogbench
from drol.tasks.ogbench.loading import environment_maker, read_dataset, read_task_facts, stored_shapes
from drol.tasks.ogbench.names import ENVIRONMENTS, find_name
from drol.tasks.ogbench.rewards import PlaceGoal, read_goal

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # gymnasium's and glfw's, about OGBench and screens

FAMILIES = {
    "pointmaze-teleport": "navigate",
    "antmaze-giant": "stitch",
    "humanoidmaze-medium": "navigate",
    "antsoccer-arena": "navigate",
    "cube-double": "play",
    "scene": "noisy",
    "puzzle-3x3": "play",
}


@pytest.fixture(scope="module", params=FAMILIES)
def environment(request):
    """An environment of a family, in which the tests choose the task."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        made = make_ogbench(f"{request.param}-singletask-v0")
    made.reset(seed=0)
    yield request.param, made
    made.close()


def random_file(generator, goal, shapes, rows=60) -> dict[str, np.ndarray]:
    """Trajectories of different lengths whose states are often, not always, at the goal."""
    arrays = {name: generator.normal(size=(rows, *shape)).astype(np.float32) for name, shape in shapes.items()}
    arrays["actions"] = np.tanh(arrays["actions"])
    arrays["terminals"] = generator.uniform(size=rows) < 0.15
    arrays["terminals"][[0, -2]] = False
    arrays["terminals"][-1] = True
    arrays["qvel"] = np.zeros((rows, 3), np.float32)
    if shapes["observations"] == (64, 64, 3):
        arrays["observations"] = generator.integers(0, 256, (rows, 64, 64, 3)).astype(np.uint8)
    if isinstance(goal, PlaceGoal):
        place = goal.place + generator.uniform(-1, 1, (rows, 2)) * goal.radius * 1.2
        arrays["qpos"][:, goal.column : goal.column + 2] = place
        return arrays
    for number, cube in enumerate(goal.cubes):
        arrays["qpos"][:, 14 + 7 * number : 17 + 7 * number] = cube + generator.uniform(-0.03, 0.03, (rows, 3))
    for column, position in goal.slides.items():
        arrays["qpos"][:, column] = position + generator.uniform(-0.06, 0.06, rows)
    if goal.buttons is not None:
        pressed = generator.uniform(size=(rows, len(goal.buttons))) < 0.1
        arrays["button_states"] = np.where(pressed, 1 - goal.buttons, goal.buttons)
    return arrays


def check_equal(dataset, expected):
    row = np.asarray(dataset.start)
    arrays = {name: np.asarray(getattr(dataset, name)) for name in ("observation", "action", "reward", "continues")}
    np.testing.assert_array_equal(arrays["observation"][row], expected["observations"])
    np.testing.assert_array_equal(arrays["observation"][row + 1], expected["next_observations"])
    np.testing.assert_array_equal(arrays["reward"][row], expected["rewards"])
    np.testing.assert_array_equal(arrays["continues"][row], expected["masks"])
    np.testing.assert_array_equal(np.asarray(dataset.last)[row + 1], expected["terminals"])
    limit = np.float32(1 - 1e-5)
    np.testing.assert_array_equal(arrays["action"][row], np.clip(expected["actions"], -limit, limit))


def official(name, path, environment):
    """The training and the validation part as the ogbench package reads them."""
    return ogbench.make_env_and_datasets(name, dataset_path=str(path), dataset_only=True, cur_env=environment)


@pytest.mark.parametrize("visual", [False, True])
def test_a_file_of_any_family_is_what_ogbench_makes_of_it(environment, visual, tmp_path):
    name, made = environment
    if visual and not ENVIRONMENTS[name].visual:
        pytest.skip("there are no images of it")
    for number in range(1, 6):
        made.unwrapped._reward_task_id = number
        made.reset(seed=0)
        goal, shapes = read_goal(made), stored_shapes(made, visual)
        path = tmp_path / "data.npz"
        for target, seed in ((path, number), (tmp_path / "data-val.npz", 10 + number)):
            np.savez_compressed(target, **random_file(np.random.default_rng(seed), goal, shapes))
        task = f"{'visual-' * visual}{name}-{FAMILIES[name]}-singletask-task{number}-v0"
        train, validation = official(task, path, made)
        found = read_dataset(path, goal, shapes)
        check_equal(found, train)
        check_equal(read_dataset(tmp_path / "data-val.npz", goal, shapes), validation)
        assert 0 < (train["masks"] == 0).sum() < found.size
        assert found.frame_stack == (3 if visual else 1)


def test_the_environment_judges_the_state_before_the_action_as_the_data_do(environment):
    _, made = environment
    assert made.unwrapped._success_timing == "pre"


def test_a_run_chooses_how_images_are_stacked_and_cropped(tmp_path):
    name = "visual-cube-single-play-singletask-task1-v0"
    state_based = make_ogbench("cube-single-singletask-task1-v0")
    state_based.reset(seed=0)
    arrays = random_file(np.random.default_rng(0), read_goal(state_based), stored_shapes(state_based, True))
    for path in (tmp_path / "data.npz", tmp_path / "data-val.npz"):
        np.savez(path, **arrays)
    found = {}
    for changes in ({}, {"frame_stack": 2, "crop_probability": 0.0, "success_timing": "after"}):
        config = RunConfig(DROL(), name, dataset=str(tmp_path / "data.npz"), **changes)
        task = config.load_task()
        assert config.prepare(task).make_environment.keywords == task.make_environment.keywords
        for data in (task.train, task.validation):
            assert data.spec.observation_shape == (64, 64, 3 * task.make_environment.keywords["frame_stack"])
        found[len(changes)] = (task.train.frame_stack, task.train.crop_probability, task.success_timing)
    assert found == {0: (3, 0.5, "before"), 3: (2, 0.0, "after")}


def test_a_task_of_states_refuses_settings_of_images(tmp_path):
    for changes in ({"frame_stack": 2}, {"crop_probability": 0.0}):
        (name,) = changes
        with pytest.raises(InputError, match=rf"^{name} is .*; it is for visual tasks of OGBench, so leave it out for"):
            RunConfig(DROL(), **changes).load_task()


def test_a_file_of_another_task_is_refused(environment, tmp_path):
    _, made = environment
    made.reset(seed=0)
    goal, shapes = read_goal(made), stored_shapes(made, False)
    path = tmp_path / "data.npz"
    np.savez(path, **random_file(np.random.default_rng(0), goal, shapes | {"observations": (7,)}))
    with pytest.raises(InputError, match=r"data.npz cannot be used: a row of 'observations' has shape \(7,\)"):
        read_dataset(path, goal, shapes)


@pytest.fixture(scope="module")
def maze():
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        made = make_ogbench("pointmaze-medium-singletask-task1-v0")
    made.reset(seed=0)
    yield made
    made.close()


def drive_to_the_goal(timing, steps=30):
    """The rewards, ends and successes of steps that go straight from beside the goal to it, and the goal's distance."""
    maker = environment_maker(find_name("pointmaze-medium-navigate-singletask-task1-v0"), timing)
    made = maker()
    made.reset(seed=0)
    inner = made.unwrapped
    inner.set_xy(np.add(inner.cur_goal_xy, (0.0, 2.0)))
    answers, distances = [], []
    for _ in range(steps):
        _, reward, terminated, _, info = made.step(np.asarray([0.0, -1.0]))
        answers.append((reward, terminated, info["success"]))
        distances.append(float(np.linalg.norm(inner.get_xy() - inner.cur_goal_xy)))
        if terminated:
            break
    made.close()
    return answers, distances


def test_success_after_the_step_ends_an_episode_one_step_earlier(maze):
    before, distances = drive_to_the_goal("before")
    after, earlier_distances = drive_to_the_goal("after")
    assert len(before) == len(after) + 1 > 2
    assert after == before[1:]  # the last of -1, ..., -1, 0 comes a step earlier
    assert after[-1] == (0.0, True, True)
    assert earlier_distances == distances[:-1]
    radius = read_goal(maze).radius
    assert distances[-3] > radius >= distances[-2]  # judged after the step, it ends where it arrives


@settings(deadline=None, max_examples=30)
@given(
    lengths=st.lists(st.integers(2, 9), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    types=st.tuples(st.sampled_from(["<f4", "<f8", ">f4", "<f2"]), st.sampled_from(["?", "u1", "<f4"])),
    order=st.sampled_from("CF"),
    packed=st.booleans(),
)
def test_any_trajectories_in_any_number_format_are_what_ogbench_makes_of_them(
    maze, lengths, seed, types, order, packed
):
    goal, shapes = read_goal(maze), stored_shapes(maze, False)
    arrays = random_file(np.random.default_rng(seed), goal, shapes, sum(lengths))
    arrays["terminals"] = np.isin(np.arange(1, sum(lengths) + 1), np.cumsum(lengths)).astype(types[1])
    for name in ("observations", "actions", "qpos"):
        arrays[name] = np.asarray(arrays[name], types[0], order=order)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        for target in (path, path.with_name("data-val.npz")):
            (np.savez_compressed if packed else np.savez)(target, **arrays)
        expected = official("pointmaze-medium-navigate-singletask-task1-v0", path, maze)[0]
        check_equal(read_dataset(path, goal, shapes), expected)


def test_ends_of_trajectories_do_not_end_the_task(maze, tmp_path):
    goal, shapes = read_goal(maze), stored_shapes(maze, False)
    arrays = random_file(np.random.default_rng(0), goal, shapes, rows=6)
    arrays["terminals"] = np.asarray([False, False, True, False, False, True])
    arrays["qpos"][:] = goal.place + 10 * goal.radius
    arrays["qpos"][4] = goal.place
    np.savez(tmp_path / "data.npz", **arrays)
    found = read_dataset(tmp_path / "data.npz", goal, shapes).take(np.arange(4))
    np.testing.assert_array_equal(found.next_action_known, [1, 0, 1, 0])  # two trajectories of two transitions
    np.testing.assert_array_equal(found.continues, [1, 1, 1, 0])  # only success ends the task
    np.testing.assert_array_equal(found.reward, [-1, -1, -1, 0])


def test_a_table_is_read_without_warnings_of_its_boxes():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*precision lowered")
        assert read_task_facts(find_name("cube-single-play-singletask-task2-v0")).shapes["actions"] == (5,)


@pytest.mark.parametrize("name", ["antmaze-large-navigate-singletask-task3-v0", "cube-single-play-singletask-task5-v0"])
def test_a_collected_file_is_what_ogbench_makes_of_it(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = shared(f"data/datasets/{name.rpartition('-singletask')[0]}-v0.npz")
    task = load_task(name, path)
    environment = make_ogbench(name.replace("-navigate", "").replace("-play", ""))
    for dataset, expected in zip((task.train, task.validation), official(name, path, environment), strict=True):
        check_equal(dataset, expected)
    assert (task.maze is None) == name.startswith("cube")
    environment.close()
