import h5py
import numpy as np
import pytest
from foreign_files import write_d3rlpy
from step_files import ENDS, flat_steps, refusal, write_minari, write_robomimic

from drol.data.readers.hdf5 import write_hdf5
from drol.data.readers.hdf5_steps import EpisodeHDF5File, FlatHDF5File, open_hdf5_steps


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


def test_the_dump_of_d3rlpy_is_read(tmp_path):
    path = tmp_path / "replay.h5"
    episodes = write_d3rlpy(path)
    file = open_hdf5_steps(path, {})
    assert file.names == {
        "observation": "observations", "action": "actions", "reward": "rewards", "terminal": "terminated",
        "episode": "the numbers of the arrays",
    }  # fmt: skip
    blocks = [block for block, _ in file.blocks()]
    assert len(blocks) == len(episodes)
    for number, (block, episode) in enumerate(zip(blocks, episodes, strict=True)):
        np.testing.assert_array_equal(block["observation"], episode["observations"])
        assert block["terminal"].sum() == block["terminal"][-1] == (number != 1)
    assert {each.name for each in file.unused} == {"columns", "num_episodes", "version"}


def test_masks_of_robomimic_are_the_split_or_are_named(tmp_path):
    path = tmp_path / "demo.hdf5"
    write_robomimic(path, flat_steps())
    with h5py.File(path, "a") as file:
        file["mask/valid"] = np.array([b"demo_1", b"demo_3"])
        file["mask/half"] = np.array([b"demo_0"])
        file.attrs["env_args"] = "{}"
    vectors = {"observation": ["obs/eef_pos"]}
    file = open_hdf5_steps(path, vectors)
    held_out = [bool(block["held_out"].all()) for block, _ in file.blocks()]
    assert held_out == [False, True, False, True]
    assert file.notes[0].startswith("mask/valid holds out 2 of 4 episodes, as the file says; 1 are in neither mask")
    unused = {each.name: each.why for each in file.unused}
    assert unused["mask/half"] == "only mask/valid is used, to hold out its episodes"
    assert unused["env_args"] == "attributes of files are not read"
    other = open_hdf5_steps(path, vectors | {"held_out": ["none"]})
    assert "held_out" not in next(other.blocks())[0]
    assert {each.name for each in other.unused} >= {"mask/train", "mask/valid", "mask/half"}


def test_a_mask_of_demonstrations_that_are_not_there_is_refused(tmp_path):
    path = tmp_path / "demo.hdf5"
    write_robomimic(path, flat_steps())
    with h5py.File(path, "a") as file:
        file["mask/valid"] = np.array([b"demo_9"])
    assert "mask/valid names 'demo_9', which the file does not have" in refusal(
        open_hdf5_steps, path, {"observation": ["states"]}
    )


def test_units_and_frames_are_attributes(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["observations"], file["actions"] = np.zeros((3, 2)), np.zeros((3, 1))
        file["observations"].attrs.update({"units": "m", "frame": "world"})
    file = open_hdf5_steps(tmp_path / "data.h5", {})
    assert file.dimensions("observation").describe() == ["observations[0] [m] in world", "observations[1] [m] in world"]


@pytest.mark.parametrize("kind", [h5py.string_dtype(), "S10"])
def test_episodes_may_be_text(tmp_path, kind):
    path, names = tmp_path / "data.h5", np.array(["first", "second run"])[np.arange(60) // 30]
    with h5py.File(path, "w") as file:
        for name, array in flat_steps().items():
            file[name] = array
        file.create_dataset("episode", data=names.tolist(), dtype=kind)
    file = open_hdf5_steps(path, {})
    assert np.concatenate([block["episode"] for block, _ in file.blocks()]).tolist() == names.tolist()
    assert "has the type" in refusal(open_hdf5_steps, path, {"observation": ["episode"], "episode": ["none"]})
