"""What presets give. That the numbers are those of the tables is tested in test_hyperparameters.py."""

import dataclasses

import pytest
from toys import tiny_task

from drol.algorithms import ALGORITHMS, DROLChoice
from drol.algorithms.base import SMALL
from drol.algorithms.drol import DROL
from drol.errors import InputError
from drol.presets.settings import LAPTOP, METHODS, PRESETS, TASKS, Settings, family_rows, settings, task_settings
from drol.runs.config import RunConfig

MAZES = ("umaze", "umaze-diverse", "medium-play", "medium-diverse", "large-play", "large-diverse")

# Where the official commands differ: task, preset, hyperparameter, printed, official.
DIFFERENCES = [
    ("antmaze-large-play-v2", "released", "bc_weight", 0.03, 0.1),
    ("antmaze-large-diverse-v2", "released", "bc_weight", 0.03, 0.1),
    ("antmaze-umaze-v2", "released-tuned", "num_candidates", 16, 2),
    ("antmaze-medium-play-v2", "released-tuned", "num_candidates", 16, 32),
    ("pen-human-v1", "released-tuned", "num_candidates", 4, 16),
    ("hammer-human-v1", "released-tuned", "num_candidates", 16, 8),
    ("hammer-cloned-v1", "released-tuned", "num_candidates", 16, 8),
    ("hammer-expert-v1", "released-tuned", "num_candidates", 16, 8),
]


def test_the_tasks_are_those_of_the_paper():
    assert len(TASKS) == len(set(TASKS)) == 68
    assert sum("singletask" in task for task in TASKS) == 50
    assert {f"antmaze-{maze}-v2" for maze in MAZES} <= set(TASKS)
    assert set(METHODS) <= set(ALGORITHMS)


def test_drol_as_released_differs_only_where_the_commands_do():
    found = []
    for task in TASKS:
        for released in ("released", "released-tuned"):
            printed = task_settings(task, "drol", released.replace("released", "paper")).hyperparameters
            for name, value in task_settings(task, "drol", released).hyperparameters.items():
                if printed[name] != value:
                    found.append((task, released, name, printed[name], value))
    assert sorted(found) == sorted(DIFFERENCES)


def test_both_presets_of_a_difference_say_so():
    notes = [task_settings("pen-human-v1", "drol", preset).notes for preset in PRESETS]
    words = (
        "num_candidates is 4 as printed (preset paper-tuned) and 16 in the official commands (preset released-tuned)"
    )
    assert notes == [(), (f"drol: {words}",), (), (f"drol: {words}",)]


def test_baselines_are_the_same_under_every_preset():
    for task in TASKS:
        for algorithm in METHODS[1:]:
            printed = task_settings(task, algorithm)
            assert all(task_settings(task, algorithm, preset) == printed for preset in PRESETS)


@pytest.mark.parametrize("algorithm", METHODS)
def test_every_setting_makes_a_valid_run(algorithm):
    kind = ALGORITHMS[algorithm]
    for task in TASKS:
        for preset in PRESETS:
            settings = task_settings(task, algorithm, preset)
            for name, value in settings.hyperparameters.items():  # 1 and 1.0 would be different run folders
                assert type(value) is type(getattr(kind, name)), name
            run = RunConfig(algorithm=kind(**settings.hyperparameters), task=task, **settings.run)
            assert run.steps == (1_000_000 if "singletask" in task else 500_000)
            assert all("\n" not in note for note in settings.notes)
            assert settings.source
            if settings.unknown or settings.doubtful:
                assert settings.notes


def test_the_printed_loss_has_the_printed_alpha_of_each_task():
    for task in TASKS:
        for preset in ("paper", "paper-tuned"):
            printed = dict(task_settings(task, "drol", preset).hyperparameters)
            literal = task_settings(task, "drol-equation", preset)
            assert literal.hyperparameters == {"alpha": printed.pop("bc_weight"), **printed}
            assert "multiplies raw Q" in literal.notes[0]
    config = settings("cube-single-play-singletask-task2-v0", "drol-equation")
    assert (config.algorithm.alpha, config.algorithm.discount, config.steps) == (10.0, 0.99, 1_000_000)
    assert settings("cube-single-play-singletask-task2-v0", "drol-equation", "small").algorithm.alpha == 10.0
    for task in TASKS:  # no official command runs it
        assert task_settings(task, "drol-equation", "released") == task_settings(task, "drol-equation")


def test_a_control_has_the_settings_of_drol_on_every_task():
    for task in TASKS:
        for preset in PRESETS:
            ours, control = (task_settings(task, name, preset) for name in ("drol", "drol-control"))
            assert (control.hyperparameters, control.run) == (ours.hyperparameters, ours.run)
    for scale in ("short", "medium", "small"):
        for task in ("cube-single-play-singletask-task2-v0", "pointmaze-medium-navigate-singletask-task1-v0"):
            ours, control = settings(task, "drol", scale), settings(task, "drol-control", scale, winner="lagged")
            assert dataclasses.replace(control, algorithm=ours.algorithm) == ours
            own = control.algorithm.to_dict()
            assert own.pop("winner") == "lagged"
            assert own.items() <= ours.algorithm.to_dict().items()


def test_a_default_task_has_the_settings_of_its_family():
    for algorithm in METHODS:
        for data in ("antmaze-giant-navigate", "scene-play"):
            default = task_settings(f"{data}-singletask-v0", algorithm)
            assert default == task_settings(f"{data}-singletask-task3-v0", algorithm)


def test_rebrac_takes_next_actions_as_the_code_that_made_the_published_numbers():
    for task in TASKS:
        for preset in PRESETS:
            masked = settings(task, "rebrac", preset).algorithm.to_dict()["mask_next_action"]
            assert masked == ("singletask" not in task)  # the columns of D4RL are of CORL, whose next actions are right


def test_unknown_values_are_absent_and_said():
    unknown = {
        (task, algorithm, task_settings(task, algorithm).unknown)
        for task in TASKS
        for algorithm in METHODS
        if task_settings(task, algorithm).unknown
    }
    ants = [f"antsoccer-arena-navigate-singletask-task{number}-v0" for number in range(1, 6)]
    puzzles = [f"puzzle-{size}-play-singletask-task{number}-v0" for size in ("3x3", "4x4") for number in range(1, 6)]
    d4rl = [task for task in TASKS if "singletask" not in task]
    assert unknown == {
        *((task, algorithm, ("alpha",)) for task in ants for algorithm in ("fawac", "fbrac")),
        *((task, "sorl", ("q_weight",)) for task in puzzles),
        *((task, "sorl", ("q_weight", "discount", "q_aggregation")) for task in d4rl),
    }
    settings = task_settings(ants[0], "fbrac")
    assert "alpha" not in settings.hyperparameters
    assert "at its default unless given: alpha 10.0" in settings.notes[0]


def test_doubtful_values_are_marked():
    doubtful = {
        (task, algorithm): task_settings(task, algorithm).hyperparameters["alpha"]
        for task in TASKS
        for algorithm in METHODS
        if task_settings(task, algorithm).doubtful == ("alpha",)
    }
    assert doubtful == {
        ("pen-human-v1", "fawac"): 0.03,
        ("pen-expert-v1", "fawac"): 0.1,
        ("hammer-cloned-v1", "fawac"): 0.03,
        ("relocate-cloned-v1", "fawac"): 0.1,
        ("relocate-cloned-v1", "fbrac"): 3000,
    }


@pytest.mark.parametrize("algorithm", ["bc", "iql", "rebrac"])
def test_columns_of_corl_say_that_the_networks_are_our_own(algorithm):
    (note,) = task_settings("door-human-v1", algorithm).notes
    assert "own networks" in note
    assert "CORL" in note


@pytest.mark.parametrize(
    "task",
    [
        "pointmaze-medium-navigate-singletask-task1-v0",
        "antmaze-large-stitch-singletask-v0",
        "cube-double-noisy-singletask-v0",
        "antmaze-giant-navigate-singletask-task6-v0",
        "antmaze-umaze-v1",
        "hopper-medium-v2",
    ],
)
def test_other_tasks_have_no_settings_and_a_note(task):
    note = f"{task} is not a task of the paper; the defaults of drol hold"
    assert task_settings(task, "drol") == Settings({}, {}, (note,), "none")


def test_an_algorithm_that_is_not_in_the_paper_has_no_settings(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "mine", ALGORITHMS["bc"])
    assert task_settings("pen-human-v1", "mine").hyperparameters == {}
    assert task_settings("pen-human-v1", "mine").notes == (
        "mine is not a method of the paper; the defaults of mine hold",
    )
    assert family_rows("mine") == []


def test_wrong_names_are_answered_with_what_there_is():
    with pytest.raises(InputError, match=r"'papr'; it must be one of paper, paper-tuned, released, released-tuned"):
        task_settings("pen-human-v1", "drol", "papr")
    with pytest.raises(InputError, match="did you mean drol"):
        settings("pen-human-v1", "droll")
    with pytest.raises(InputError, match="unknown task 'pen-humam-v1'; did you mean pen-human-v1"):
        settings("pen-humam-v1")
    with pytest.raises(InputError, match="unknown setting 'bc_wieght'; did you mean bc_weight"):
        settings("pen-human-v1", bc_wieght=3.0)


def test_changes_win_over_the_preset_and_the_preset_over_defaults():
    config = settings("pen-human-v1", "drol", "paper-tuned", bc_weight=7.0, seeds=(4, 5))
    assert config == RunConfig(
        DROL(bc_weight=7.0, num_candidates=4, q_aggregation="min"), "pen-human-v1", seeds=(4, 5), steps=500_000
    )
    assert settings(algorithm=DROL) == RunConfig(DROL())  # a class is as good as a name; a task without a row


def test_the_laptop_preset_has_small_networks_for_every_method():
    for name, kind in ALGORITHMS.items():
        config = settings(algorithm=name, preset=LAPTOP, steps=9)
        assert type(config.algorithm) is kind
        assert config.algorithm.to_dict()["hidden_sizes"] == (128,) * 3
        assert (config.steps, config.observation_scale) == (9, 4.0)


def test_own_data_does_not_get_what_laptop_tuned_for_the_maze_of_the_demo():
    task = tiny_task(None)
    config = settings(task, "drol", LAPTOP)
    assert config.algorithm == DROL(**SMALL)
    assert (config.algorithm.bc_weight, config.observation_scale) == (1.0, 1.0)
    assert type(settings(task, preset=LAPTOP).algorithm) is DROLChoice
    assert settings("pen-human-v1", "drol", LAPTOP).algorithm.bc_weight == 0.03


def test_family_rows_cover_every_task_once():
    for algorithm in METHODS:
        rows = family_rows(algorithm)
        assert [row.benchmark for row in rows] == ["OGBench"] * 10 + ["D4RL"] * 18
        assert [task for row in rows for task in row.tasks] == list(TASKS)
        for row in rows:
            for task in row.tasks:
                assert row.settings == {preset: task_settings(task, algorithm, preset) for preset in PRESETS}


def test_settings_cannot_be_reassigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        task_settings("pen-human-v1", "drol").source = "me"  # pyright: ignore[reportAttributeAccessIssue]
