import pytest
from made_results import made_result

from drol.errors import InputError
from drol_reproduction.scores import choosing_tasks, chosen_candidates, seed_scores

MAZE = "pointmaze-medium-navigate-singletask-task1-v0"


def evaluations(scores, task=MAZE, seed=0, steps=None, **changes):
    """The evaluations of a training, 10 updates apart, the first of them before it."""
    steps = steps or 10 * (len(scores) - 1)
    return [
        made_result(task=task, seed=seed, step=10 * number, steps=steps, score=score, **changes)
        for number, score in enumerate(scores)
    ]


def test_the_protocol_takes_the_last_three_evaluations_on_ogbench_and_the_last_on_d4rl():
    rows = evaluations([0, 90, 10, 20, 60], seed=0) + evaluations([0, 0, 30, 30, 30], seed=3)
    assert seed_scores(rows) == {0: 30, 3: 30}
    assert seed_scores(rows, "last") == {0: 60, 3: 30}
    assert seed_scores(rows, "best") == {0: 90, 3: 30}
    assert seed_scores(evaluations([0, 90, 10, 20, 60], task="pen-human-v1")) == {0: 60}


def test_unfinished_runs_and_other_ways_to_act_do_not_count():
    assert seed_scores(evaluations([0, 50, 50], steps=100)) == {}
    rows = evaluations([0, 40, 40, 40])
    assert seed_scores([*rows, made_result(task=MAZE, step=30, steps=30, evaluation="extra", score=99)]) == {0: 40}


def test_an_unknown_protocol_is_named():
    with pytest.raises(InputError, match="unknown protocol 'median'"):
        seed_scores([], "median")


def ladder(scores, task=MAZE):
    return [
        row
        for candidates, score in scores.items()
        for row in evaluations([0, score, score], task, method="drol", settings={"num_candidates": candidates})
    ]


def test_the_chosen_k_is_the_best_on_the_choosing_task_and_the_smallest_of_equals():
    task = MAZE.replace("task1", "task5")
    assert chosen_candidates(ladder({1: 20, 4: 70, 16: 70}), task) == 4
    assert chosen_candidates(ladder({1: 20, 4: 70, 16: 70}), task, (1, 4, 16)) == 4
    assert chosen_candidates(ladder({1: 20, 4: 70}), task, (1, 4, 16)) is None
    assert chosen_candidates(ladder({4: 70}), task) is None
    assert chosen_candidates(ladder({1: 20, 4: 70}, task), task) is None  # those of another task do not choose


def test_k_of_a_hand_is_chosen_on_all_three_datasets():
    names = choosing_tasks("door-cloned-v1")
    assert names == ("door-human-v1", "door-cloned-v1", "door-expert-v1")
    rows = [row for name in names for row in ladder({1: 50, 8: 40 if name == "door-human-v1" else 60}, name)]
    assert chosen_candidates(rows, "door-human-v1") == 8
    assert chosen_candidates([row for row in rows if row.task != names[2]], "door-human-v1") is None


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("antmaze-large-play-v2", "antmaze-large-play-v2"),
        ("cube-double-play-singletask-task5-v0", "cube-double-play-singletask-task2-v0"),
        ("antsoccer-arena-navigate-singletask-task1-v0", "antsoccer-arena-navigate-singletask-task4-v0"),
        ("puzzle-4x4-play-singletask-task1-v0", "puzzle-4x4-play-singletask-task4-v0"),
    ],
)
def test_k_is_chosen_on_the_default_task(task, expected):
    assert choosing_tasks(task) == (expected,)
