import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from drol.tasks.ogbench.environment import make_ogbench
from drol.tasks.ogbench.recipes import RECIPES
from drol_reproduction.collecting.ogbench import manipulation
from drol_reproduction.collecting.ogbench.collect import collect
from drol_reproduction.collecting.ogbench.manipulation import is_healthy, make_oracles, make_table, play_table

# Importing dm_control looks for a screen.
pytestmark = pytest.mark.filterwarnings("ignore:.*DISPLAY.*")

SIZES = {"cube-single": (28, 21, None), "scene": (40, 25, 2), "puzzle-3x3": (55, 23, 9)}


def seed_of(number):
    return np.random.SeedSequence((0, number))


@pytest.fixture(scope="module", params=SIZES)
def table(request):
    environment = make_table(RECIPES[f"{request.param}-play-v0"])
    yield request.param, environment
    environment.close()


@pytest.mark.parametrize("kind", ["play", "noisy"])
def test_a_trajectory_has_ogbenchs_fields_and_depends_on_its_seed_alone(table, kind):
    name, environment = table
    recipe = dataclasses.replace(RECIPES[f"{name}-{kind}-v0"], rows=12)
    first, second, again = (play_table(environment, seed_of(number), recipe) for number in (0, 1, 0))
    for key in first:
        np.testing.assert_array_equal(first[key], again[key], err_msg=key)
    assert not np.array_equal(first["observations"], second["observations"])
    observation, qpos, buttons = SIZES[name]
    assert first["observations"].shape == (12, observation)
    assert first["qpos"].shape == (12, qpos)
    assert first["actions"].shape == (12, 5)
    assert np.abs(first["actions"]).max() <= 1
    assert list(np.flatnonzero(first["terminals"])) == [11]
    assert ("button_states" in first) == (buttons is not None)
    if buttons:
        assert first["button_states"].shape == (12, buttons)
        assert first["button_states"].dtype == np.int64


def test_a_reached_target_is_followed_by_another(table, monkeypatch):
    name, environment = table
    set_new_target, calls = environment.set_new_target, []
    monkeypatch.setattr(environment, "set_new_target", lambda **given: calls.append(given) or set_new_target(**given))
    play_table(environment, seed_of(0), dataclasses.replace(RECIPES[f"{name}-play-v0"], rows=150))
    targets = [given for given in calls if "p_stack" in given]
    assert targets
    assert targets[0]["p_stack"] == (0.0 if name == "cube-single" else 0.5)


def test_oracles_have_the_noise_of_the_recipe(table):
    name, environment = table
    for oracle in make_oracles(environment, RECIPES[f"{name}-play-v0"]).values():
        assert (oracle._noise, oracle._noise_smoothing) == (0.1, 0.5)
    for oracle in make_oracles(environment, RECIPES[f"{name}-noisy-v0"]).values():
        assert oracle._min_norm == 0.4


def test_the_share_of_random_actions_is_that_of_the_recipe(table):
    name, environment = table
    recipe = dataclasses.replace(RECIPES[f"{name}-noisy-v0"], rows=40, noise=0.0, random_actions=1.0)
    actions = play_table(environment, seed_of(0), recipe)["actions"]
    assert abs(actions.mean()) < 0.2
    assert abs(actions.std() - 1 / np.sqrt(3)) < 0.1


def qpos_with_cube(*places):
    qpos = np.zeros((len(places), 25))
    qpos[:, 14:17] = places
    return qpos


@pytest.mark.parametrize(
    ("place", "healthy"),
    [
        ((0.4, 0.0, 0.02), True),
        ((0.4, 0.28, 0.02), True),
        ((0.4, 0.29, 0.02), False),  # too far right
        ((0.33, -0.35, 0.066), True),  # in the drawer
        ((0.33, -0.35, 0.02), False),  # on the floor beside it
        ((0.33, -0.35, 0.2), False),  # above it
    ],
)
def test_a_cube_out_of_sight_is_unhealthy(place, healthy):
    assert is_healthy(qpos_with_cube((0.4, 0, 0.02), place, (0.4, 0, 0.02))) == healthy


def test_unhealthy_trajectories_are_collected_again(monkeypatch):
    answers = [{"qpos": qpos_with_cube((0.4, y, 0.02))} for y in (0.5, 0.4, 0.1)]
    monkeypatch.setattr(manipulation, "attempt", lambda *_: answers.pop(0))
    assert play_table(None, seed_of(0), RECIPES["scene-play-v0"])["qpos"][0, 15] == 0.1
    monkeypatch.setattr(manipulation, "attempt", lambda *_: {"qpos": qpos_with_cube((0.4, 0.5, 0.02))})
    with pytest.raises(RuntimeError, match="100 of 100 attempts"):
        play_table(None, seed_of(0), RECIPES["scene-play-v0"])


@pytest.mark.filterwarnings("ignore:.*precision lowered.*")  # of the bounds of its action space
def test_the_file_is_one_that_ogbench_loads_and_rewards(tmp_path, collect_here):
    import ogbench

    path = tmp_path / "scene-play-v0.npz"
    collect_here("scene-play-v0", path, episodes=2, rows=15)
    train, validation = ogbench.make_env_and_datasets(
        "scene-play-singletask-task1-v0",
        dataset_path=str(path),
        dataset_only=True,
        cur_env=make_ogbench("scene-singletask-task1-v0"),
    )
    assert train["rewards"].shape == (28,)
    assert validation["rewards"].shape == (14,)
    assert set(train["rewards"]) <= set(range(-5, 1))


def has_egl() -> bool:
    return any(
        list(Path(folder).glob("**/libEGL.so*")) for folder in ("/usr/lib", "/usr/lib64") if Path(folder).is_dir()
    ) or bool(shutil.which("nvidia-smi"))


@pytest.mark.skipif(not has_egl(), reason="EGL is not installed")
def test_pictures_are_collected_where_egl_is(tmp_path, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    path = tmp_path / "visual.npz"
    collect("visual-cube-single-play-v0", path, episodes=1, rows=2, processes=1)
    with np.load(path) as file:
        assert file["observations"].shape == (2, 64, 64, 3)
        assert file["observations"].dtype == np.uint8
        assert file["observations"].std() > 5
        assert file["qpos"].shape == (2, 21)
