"""Every format gives the same dataset; errors are reported and leave no files."""

import shutil

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from step_files import (
    COUNT,
    ENDS,
    FORMATS,
    episode_numbers,
    flat_steps,
    write_csv,
    write_hdf5,
    write_minari,
    write_npz,
    write_robomimic,
)
from step_files import refusal as refusal_of

from drol.data.dataset import Dataset
from drol.data.import_options import ReadingOptions
from drol.data.importing.import_files import Scaling, import_files
from drol.data.readers import fields
from drol.errors import InputError

STEPS = flat_steps()
EXPECTED = Dataset.from_arrays(
    STEPS["observations"], STEPS["actions"], STEPS["rewards"], STEPS["terminals"], STEPS["timeouts"]
).fingerprint()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "datasets"


def refusal(root, paths, mapping=None, reading=None, scaling=None, **options) -> str:
    """The one line with which files are refused; nothing is written."""
    message = refusal_of(import_files, paths, "mine", mapping, reading, scaling, root=root, **options)
    assert not root.exists()
    return message


@pytest.mark.parametrize("block_bytes", [1 << 23, 300])
@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
def test_every_format_gives_what_the_arrays_give(tmp_path, root, monkeypatch, name, write, block_bytes):
    monkeypatch.setattr(fields, "BLOCK_BYTES", block_bytes)
    steps = flat_steps()
    write(tmp_path / name, steps)
    stored = import_files([tmp_path / name], "mine", root=root, validation=0)
    assert stored.manifest["splits"]["train"]["fingerprint"] == EXPECTED
    assert stored.manifest["counts"]["steps"] == COUNT
    assert stored.manifest["files"] == [{"name": name, "bytes": (tmp_path / name).stat().st_size}]


@pytest.mark.parametrize("scaling", [Scaling(), Scaling(from_data=True)])
@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
def test_every_byte_is_reported_in_order(tmp_path, root, monkeypatch, name, write, scaling):
    monkeypatch.setattr(fields, "BLOCK_BYTES", 300)
    write(tmp_path / name, flat_steps())
    write(tmp_path / f"other {name}", flat_steps())
    reports = []
    paths = [tmp_path / name, tmp_path / f"other {name}"]
    import_files(paths, "mine", scaling=scaling, root=root, report=lambda *report: reports.append(report))
    done, totals, what = zip(*reports, strict=True)
    assert list(done) == sorted(done)
    assert len(set(totals)) == 1
    assert done[-1] == pytest.approx(totals[-1])
    assert what[-1] == f"reading other {name}"
    assert any("range of actions" in each for each in what) == scaling.from_data


@pytest.mark.parametrize("block_bytes", [1 << 23, 300])
def test_groups_of_minari_keep_every_transition(tmp_path, root, monkeypatch, block_bytes):
    monkeypatch.setattr(fields, "BLOCK_BYTES", block_bytes)
    steps = flat_steps()
    write_minari(tmp_path / "main_data.hdf5", steps)
    stored = import_files([tmp_path], "mine", root=root, validation=0)
    expected = Dataset.from_arrays(
        steps["observations"], steps["actions"], steps["rewards"], steps["terminals"], episode=episode_numbers(),
        next_observation=np.concatenate((steps["observations"][1:], steps["observations"][:1])),
    )  # fmt: skip
    assert expected.size == COUNT
    assert stored.manifest["splits"]["train"]["fingerprint"] == expected.fingerprint()


def test_demonstrations_of_robomimic_are_read_with_their_next_observations(tmp_path, root):
    steps, path = flat_steps(), tmp_path / "demo.hdf5"
    write_robomimic(path, steps)
    assert "both 'obs' and 'states' may be the observation" in refusal(root, [path])
    group = import_files([path], "group", {"observation": ["obs"]}, ReadingOptions("terminal"), root=root)
    assert group.manifest["fields"]["observation"] == "obs/eef_pos, obs/gripper"
    skipped = {name: why for name, _, why in group.manifest["unused"]}
    assert skipped["obs/image"] == "images cannot be joined with vectors"
    shutil.rmtree(root)
    vectors = {"observation": ["obs/eef_pos", "obs/gripper"]}
    assert "there is only dones, the groups; pass --ends" in refusal(root, [path], vectors)
    stored = import_files([path], "mine", vectors, ReadingOptions("terminal"), root=root, validation=0)
    expected = Dataset.from_arrays(
        steps["observations"], steps["actions"], steps["rewards"], episode=episode_numbers(), ends="terminal",
        next_observation=np.concatenate((steps["observations"][1:], steps["observations"][:1])),
    )  # fmt: skip
    assert expected.size == COUNT
    assert stored.manifest["splits"]["train"]["fingerprint"] == expected.fingerprint()
    assert stored.manifest["fields"]["next_observation"] == "next_obs/eef_pos, next_obs/gripper"
    images = import_files([path], "images", {"observation": ["obs/image"]}, ReadingOptions("timeout"), root=root)
    assert images.arrays("train")["observation"].shape[1:] == (8, 8, 3)
    assert images.manifest["counts"]["gaps"] == 0


def test_a_next_observation_is_not_taken_from_another_group(tmp_path, root):
    write_robomimic(tmp_path / "demo.hdf5", flat_steps())
    stored = import_files(
        [tmp_path / "demo.hdf5"], "mine", {"observation": ["states"]}, ReadingOptions("timeout"), root=root
    )
    assert "next_observation" not in stored.manifest["fields"]


def test_all_of_a_group_is_named_by_the_group(tmp_path, root):
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        for name, array in flat_steps().items():
            file[name] = array
        del file["observations"]
        file["observations/b"], file["observations/a"] = np.zeros((COUNT, 2)), np.ones(COUNT)
    stored = import_files([tmp_path / "data.hdf5"], "mine", root=root, validation=0)
    assert stored.manifest["fields"]["observation"] == "observations/a, observations/b"
    assert stored.arrays("train")["observation"][0].tolist() == [1, 0, 0]


def test_a_folder_of_lerobot_is_read_in_order(tmp_path, root):
    steps = flat_steps()
    (tmp_path / "robot" / "data" / "chunk-000").mkdir(parents=True)
    for number, (first, stop) in enumerate(((0, 20), (20, COUNT))):
        table = pyarrow.table(
            {
                "observation.state": pyarrow.array(list(steps["observations"][first:stop])),
                "action": pyarrow.array(list(steps["actions"][first:stop])),
                "episode_index": episode_numbers()[first:stop],
                "frame_index": np.arange(stop - first),
                "next.done": np.isin(np.arange(first, stop), ENDS),
            }
        )
        pyarrow.parquet.write_table(table, tmp_path / "robot" / "data" / "chunk-000" / f"file-{number:03d}.parquet")
    assert "there is no reward" in refusal(root, [tmp_path / "robot"])
    unclear = refusal(root, [tmp_path / "robot"], reading=ReadingOptions(fill_reward="end"))
    assert "there is only next.done, episode_index; pass --ends" in unclear
    stored = import_files(
        [tmp_path / "robot"], "mine", reading=ReadingOptions("timeout", "end"), root=root, validation=0
    )
    arrays = stored.arrays("train")
    assert np.flatnonzero(arrays["last"]).tolist() == list(ENDS)
    np.testing.assert_array_equal(arrays["observation"], steps["observations"])
    assert arrays["reward"].sum() == len(ENDS)
    assert stored.manifest["splits"]["train"]["transitions"] == COUNT - len(ENDS)


def test_fields_are_mapped_and_joined(tmp_path, root):
    steps = flat_steps()
    renamed = {
        "joint_a": steps["observations"][:, 0],
        "joint_b": steps["observations"][:, 1],
        "speed": steps["observations"][:, 2],
        "torque[0]": steps["actions"][:, 0],
        "torque[1]": steps["actions"][:, 1],
        "gain": steps["rewards"],
        "over": steps["terminals"] | steps["timeouts"],
        "episode": episode_numbers(),
    }
    write_csv(tmp_path / "log.csv", renamed)
    mapping = {
        "observation": ["joint_*", "speed"],
        "action": ["torque"],
        "reward": ["gain"],
        "end": ["over"],
        "episode": ["none"],
    }
    assert "there is only over;" in refusal(root, [tmp_path / "log.csv"], mapping)
    stored = import_files(
        [tmp_path / "log.csv"], "mine", mapping, ReadingOptions(ends="timeout"), root=root, validation=0
    )
    np.testing.assert_array_equal(stored.arrays("train")["observation"], steps["observations"])
    assert stored.manifest["fields"]["observation"] == "joint_a, joint_b, speed"


def test_actions_are_scaled_from_a_box_or_from_the_data(tmp_path, root):
    steps = flat_steps()
    steps["actions"] = steps["actions"] * [10, 1] + [5, 0]
    write_npz(tmp_path / "data.npz", steps)
    assert "reaches" in refusal(root, [tmp_path / "data.npz"])
    given_box = Scaling(low=(-5.0, -1.0), high=(15.0, 1.0))
    stored = import_files([tmp_path / "data.npz"], "given", scaling=given_box, root=root, validation=0)
    assert stored.manifest["actions_scaled"]
    last = stored.arrays("train")["last"]
    back = stored.box.from_unit(stored.arrays("train")["action"])
    kept = np.isin(steps["rewards"], stored.arrays("train")["reward"][~last])
    np.testing.assert_allclose(back[~last], steps["actions"][kept], atol=1e-4)
    stored = import_files([tmp_path / "data.npz"], "found", scaling=Scaling(from_data=True), root=root, validation=0)
    np.testing.assert_allclose(stored.box.low, steps["actions"].min(0))
    np.testing.assert_allclose(stored.box.high, steps["actions"].max(0))
    with pytest.raises(InputError, match="only one of --action-low and --action-high"):
        Scaling(low=(1.0,))
    with pytest.raises(InputError, match="--scale-actions takes the box from the data"):
        Scaling(True, (1.0,), (2.0,))


def test_steps_that_are_not_finite_are_refused_or_dropped(tmp_path, root):
    steps = flat_steps()
    steps["observations"][5, 1] = np.nan
    write_npz(tmp_path / "data.npz", steps)
    words = refusal(root, [tmp_path / "data.npz"])
    assert "data.npz: observations has values that are NaN" in words
    assert "step 5; fix them, or pass --drop-nonfinite" in words
    stored = import_files([tmp_path / "data.npz"], "mine", reading=ReadingOptions(drop_nonfinite=True), root=root)
    assert stored.manifest["counts"]["dropped"] == 1
    assert stored.manifest["counts"]["cuts"] == 3


def test_several_files_need_the_same_fields(tmp_path, root):
    steps = flat_steps()
    write_npz(tmp_path / "a.npz", steps)
    write_npz(tmp_path / "b.npz", {name: array for name, array in steps.items() if name != "timeouts"})
    assert "timeout is in only one of" in refusal(root, [tmp_path / "a.npz", tmp_path / "b.npz"])
    write_hdf5(tmp_path / "b.hdf5", steps)
    stored = import_files([tmp_path / "a.npz", tmp_path / "b.hdf5"], "mine", root=root, validation=0)
    assert stored.manifest["splits"]["train"]["episodes"] == 2 * len(ENDS)


def test_one_episode_is_enough_and_nothing_is_held_out(tmp_path, root):
    write_npz(tmp_path / "data.npz", {name: array[:9] for name, array in flat_steps().items()})
    stored = import_files([tmp_path / "data.npz"], "mine", root=root)
    assert stored.manifest["splits"]["train"]["transitions"] == 8
    assert not stored.has("validation")
