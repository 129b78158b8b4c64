import h5py
import numpy as np
import pytest
from step_files import ENDS, flat_steps, refusal, write_minari, write_robomimic

from drol.data.files.hdf5 import write_hdf5
from drol.data.files.hdf5_steps import EpisodeHDF5File, FlatHDF5File, open_hdf5_steps


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.hdf5"


def steps_of(file):
    """All steps of a file, joined."""
    blocks, shares = zip(*file.blocks(), strict=True)
    assert list(shares) == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def test_flat_arrays_are_steps(path):
    write = {name: array for name, array in flat_steps().items() if name != "timeouts"}
    write_hdf5(path, write)
    file = open_hdf5_steps(path, {})
    assert isinstance(file, FlatHDF5File)
    assert file.names == {
        "observation": "observations", "action": "actions", "reward": "rewards", "terminal": "terminals"
    }  # fmt: skip
    np.testing.assert_array_equal(steps_of(file)["observation"], write["observations"])


def test_a_group_is_an_episode_and_its_extra_observation_is_the_final_one(path):
    write_minari(path, flat_steps())
    file = open_hdf5_steps(path, {})
    assert isinstance(file, EpisodeHDF5File)
    assert file.names["next_observation"] == "observations"
    assert file.names["episode"] == "the groups"
    found, steps = steps_of(file), flat_steps()
    np.testing.assert_array_equal(found["observation"], steps["observations"])
    np.testing.assert_array_equal(found["next_observation"], np.roll(steps["observations"], -1, 0))
    assert np.flatnonzero(np.diff(found["episode"])).tolist() == list(ENDS[:-1])


def test_episodes_are_in_the_order_of_their_numbers(path):
    with h5py.File(path, "w") as file:
        for number in (10, 2, 1):
            file[f"data/demo_{number}/obs"] = np.full((2, 1), number)
            file[f"data/demo_{number}/actions"] = np.zeros((2, 1))
    assert steps_of(open_hdf5_steps(path, {}))["observation"].ravel().tolist() == [1, 1, 2, 2, 10, 10]


def test_an_array_that_one_episode_lacks_is_named(path):
    write_robomimic(path, flat_steps())
    with h5py.File(path, "a") as file:
        del file["data/demo_2/rewards"]
    file = open_hdf5_steps(path, {"observation": ["obs/eef_pos"]})
    assert "'data/demo_2/rewards' is not there" in refusal(lambda: list(file.blocks()))


def test_a_single_value_is_not_a_field_of_steps(path):
    with h5py.File(path, "w") as file:
        for name, array in flat_steps().items():
            file[name] = array if name != "rewards" else 1.0
    assert "'rewards' is a single value; it must have a row for each step" in refusal(open_hdf5_steps, path, {})
