import numpy as np
import pytest
from step_files import flat_steps, write_npz

from drol.data.dataset import Dataset
from drol.data.importing.import_files import import_files
from drol.data.on_disk import OnDiskDataset
from drol.errors import InputError
from drol.tasks import load_task, own_data
from drol.tasks.base import Episode


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "data"))
    write_npz(tmp_path / "steps.npz", flat_steps())
    return import_files([tmp_path / "steps.npz"], "mine", validation=0.5)


def test_an_imported_dataset_is_a_task_without_an_environment(stored):
    assert own_data.SOURCE.task_names() == ["files/mine"]
    assert own_data.SOURCE.make_environment("files/mine") is None
    task = load_task("files/mine")
    assert isinstance(task.train, Dataset)
    assert task.make_environment is None
    assert task.train.size == stored.manifest["splits"]["train"]["transitions"]
    assert task.validation is not None
    assert task.validation.size == stored.manifest["splits"]["validation"]["transitions"]
    assert task.train.fingerprint() == stored.manifest["splits"]["train"]["fingerprint"]
    assert task.score([Episode(0, 3.0, 5, True), Episode(1, 5.0, 5, True)]) == 4


def test_the_task_has_the_rate_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "data"))
    steps = flat_steps()
    write_npz(tmp_path / "steps.npz", steps | {"time": 0.05 * np.arange(len(steps["rewards"]))})
    import_files([tmp_path / "steps.npz"], "timed", validation=0.0)
    assert load_task("files/timed").control_rate == 20.0


def test_what_does_not_fit_in_memory_stays_on_disk(stored, monkeypatch):
    in_memory = load_task("files/mine").train
    monkeypatch.setattr(own_data, "free_memory", lambda: 10**9)  # the data fit, the training beside them would not
    train = load_task("files/mine").train
    assert isinstance(train, OnDiskDataset)
    assert train.fingerprint() == in_memory.fingerprint()
    np.testing.assert_array_equal(train.take(np.arange(9)).reward, in_memory.take(np.arange(9)).reward)


def test_datasets_are_listed_even_if_damaged(stored):
    (entry,) = own_data.SOURCE.datasets()
    assert entry.present
    assert entry.transitions == stored.manifest["splits"]["train"]["transitions"]
    assert (entry.observation, entry.action) == ("3", 2)
    (stored.folder / "dataset.json").write_text("{}")
    (entry,) = own_data.SOURCE.datasets()
    assert (entry.name, entry.transitions) == ("files/mine", None)


def test_damage_is_found_before_training(stored):
    path = stored.folder / "train" / "reward.npy"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="does not match its checksum"):
        load_task("files/mine")


def test_unknown_names_and_another_dataset_are_refused(stored, tmp_path):
    with pytest.raises(InputError, match=r"unknown task 'files/\.\./mine'; make it with"):
        load_task("files/../mine")
    with pytest.raises(InputError, match=r"make it with: drol data import FILE\.\.\. --out yours"):
        load_task("files/yours")
    with pytest.raises(InputError, match="already uses an imported dataset; remove --dataset"):
        load_task("files/mine", tmp_path / "steps.npz")
