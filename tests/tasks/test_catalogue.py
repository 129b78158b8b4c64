import pytest

from drol.errors import InputError
from drol.tasks.catalogue import absent_tasks, example_task, find_dataset_entry, find_datasets


def test_a_dataset_is_found_by_its_name_and_by_that_of_a_task():
    for name in ("scene-play-v0", "scene-play-singletask-task3-v0"):
        source, entry = find_dataset_entry(name)
        assert (source.name, entry.name) == ("ogbench", "scene-play-v0")
    with pytest.raises(InputError, match=r"unknown dataset 'scene-pley-v0'; did you mean scene-play-v0\? `drol data"):
        find_dataset_entry("scene-pley-v0")


def test_words_choose_by_dataset_task_and_source():
    assert {entry.name for _, entry in find_datasets(["d4rl", "pen"])} == {
        "pen-human-v1",
        "pen-cloned-v1",
        "pen-expert-v1",
    }
    assert [entry.name for _, entry in find_datasets(["visual-scene-play", "task3"])] == ["visual-scene-play-v0"]
    with pytest.raises(InputError, match="no dataset has 'a' and 'nothing-like-it' in its name"):
        find_datasets(["a", "nothing-like-it"])
    assert find_datasets(["nothing-like-it"], here=True) == []


def test_tasks_whose_file_is_not_here_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))  # where downloaded files are
    maze, scene = "pointmaze-medium-navigate-singletask-task1-v0", "scene-play-singletask-task3-v0"
    assert absent_tasks([scene, maze, "a-task-of-another-source"]) == [scene]


def test_a_task_of_a_dataset_is_named():
    assert example_task("cube-single-play-v0") == "cube-single-play-singletask-v0"
    assert example_task("nothing") is None
