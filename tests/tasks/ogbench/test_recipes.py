import gymnasium
import pytest

from drol.errors import InputError
from drol.tasks.ogbench.recipes import COLLECTABLE, HELP, RECIPES, estimate_seconds, find_recipe


def test_every_environment_is_one_of_ogbench():
    import ogbench  # noqa: F401

    assert {recipe.environment for recipe in RECIPES.values()} <= gymnasium.registry.keys()


def test_names_are_those_of_the_environment_with_the_kind_of_data():
    for name, recipe in RECIPES.items():
        assert name.replace(f"-{recipe.kind}-", "-") == recipe.environment


@pytest.mark.parametrize(
    ("name", "trajectories", "rows", "noise", "random_actions"),
    [
        ("pointmaze-medium-navigate-v0", 1000, 1001, 0.5, 0.0),
        ("pointmaze-giant-navigate-v0", 500, 2001, 0.5, 0.0),
        ("antmaze-large-stitch-v0", 5000, 201, 0.2, 0.0),
        ("visual-antmaze-medium-explore-v0", 10_000, 501, 1.0, 0.0),
        ("humanoidmaze-giant-navigate-v0", 1000, 4001, 0.2, 0.0),
        ("cube-triple-play-v0", 3000, 1001, 0.1, 0.0),
        ("scene-noisy-v0", 1000, 1001, 0.1, 0.1),
        ("visual-puzzle-4x6-noisy-v0", 5000, 1001, 0.1, 0.2),
    ],
)
def test_sizes_and_noise_are_those_of_ogbench(name, trajectories, rows, noise, random_actions):
    recipe = RECIPES[name]
    assert (recipe.trajectories, recipe.rows, recipe.noise, recipe.random_actions) == (
        trajectories,
        rows,
        noise,
        random_actions,
    )


def test_bodies_with_legs_need_an_expert_and_nothing_else_does():
    for name, recipe in RECIPES.items():
        assert recipe.needs_expert == any(word in name for word in ("antmaze", "humanoid")), name
        assert recipe.visual == ("visual" in name)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError) as caught:
        find_recipe("cube-singel-play-v0")
    assert str(caught.value) == (
        "unknown dataset of OGBench 'cube-singel-play-v0'; did you mean cube-single-play-v0? "
        "`drol data collect --help` names all that can be collected"
    )


def test_the_help_names_all_of_them():
    for name in COLLECTABLE:
        assert f"{name} " in HELP or f"{name}\n" in HELP


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("pointmaze-medium-navigate-v0", 2.6),
        ("antmaze-large-navigate-v0", 16.5),
        ("antmaze-giant-navigate-v0", 20.9),
        ("cube-single-play-v0", 80.7),
        ("cube-double-noisy-v0", 58.7),
        ("cube-triple-play-v0", 242.2),
        ("puzzle-4x4-play-v0", 84.4),
        ("humanoidmaze-large-navigate-v0", None),
        ("visual-scene-play-v0", None),
    ],
)
def test_the_time_is_that_of_all_steps_with_those_for_validation(name, minutes):
    seconds = estimate_seconds(name)
    assert minutes == (seconds and pytest.approx(seconds / 60, abs=0.1))
