import pytest
from step_files import write_dataset
from toys import random_rows, tiny_task

from drol.data.dataset import Dataset
from drol.data.on_disk import OnDiskDataset
from drol.errors import InputError
from drol.evaluation import held_out as held_out_module
from drol.evaluation.held_out import split


def test_validation_data_is_what_is_held_out():
    task = tiny_task()
    reference, held_out, unseen = split(task)
    assert unseen
    assert reference.dataset is task.train
    assert held_out.dataset is task.validation
    assert (reference.transitions, held_out.transitions) == ((0, 200), (0, 30))


def test_without_validation_data_the_last_trajectories_are_tested_against_the_others():
    reference, held_out, unseen = split(tiny_task(validation=None))
    assert not unseen
    assert (reference.transitions, held_out.transitions) == ((0, 150), (150, 200))


def test_a_single_trajectory_cannot_be_split():
    task = tiny_task(validation=None, train=Dataset.from_rows(**random_rows([20])))
    with pytest.raises(InputError, match="the data of toy is one trajectory without validation data"):
        split(task)


def test_of_data_on_disk_the_first_trajectories_are_looked_at(tmp_path, monkeypatch):
    stored = write_dataset(tmp_path, random_rows([20] * 12), validation=0)
    task = tiny_task(train=OnDiskDataset.open(stored, "train"), validation=None)
    monkeypatch.setattr(held_out_module, "LARGEST", 100)
    reference, held_out, _ = split(task)
    assert reference.dataset is held_out.dataset
    assert isinstance(reference.dataset, Dataset)
    assert (reference.transitions, held_out.transitions) == ((0, 60), (60, 80))
