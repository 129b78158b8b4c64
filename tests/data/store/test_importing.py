"""Every format gives the same dataset; what is wrong is named and leaves nothing behind."""

import contextlib
import io
import re
import zipfile

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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

from drol.data.dataset import Dataset
from drol.data.files import base
from drol.data.files.options import Reading
from drol.data.store.importing import Scaling, check_size, import_files, in_bytes, open_sources
from drol.errors import InputError


@pytest.fixture
def root(tmp_path):
    return tmp_path / "datasets"


def refusal(root, paths, mapping=None, reading=None, scaling=None, **options) -> str:
    """The one line with which files are refused; nothing is written."""
    with pytest.raises(InputError) as caught:
        import_files(paths, "mine", mapping, reading, scaling, root=root, **options)
    assert not root.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("block_bytes", [1 << 23, 300])
@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
def test_every_format_gives_what_the_arrays_give(tmp_path, root, monkeypatch, name, write, block_bytes):
    monkeypatch.setattr(base, "BLOCK_BYTES", block_bytes)
    steps = flat_steps()
    write(tmp_path / name, steps)
    done = []
    stored = import_files(
        [tmp_path / name], "mine", root=root, validation=0, report=lambda share, what: done.append(share)
    )
    expected = Dataset.from_arrays(
        steps["observations"], steps["actions"], steps["rewards"], steps["terminals"], steps["timeouts"]
    )
    assert stored.manifest["splits"]["train"]["fingerprint"] == expected.fingerprint()
    assert stored.manifest["counts"]["steps"] == COUNT
    assert stored.manifest["sources"] == [{"name": name, "bytes": (tmp_path / name).stat().st_size}]
    assert done[-1] == pytest.approx(1)
    assert done == sorted(done)


@pytest.mark.parametrize("block_bytes", [1 << 23, 300])
def test_groups_of_minari_keep_every_transition(tmp_path, root, monkeypatch, block_bytes):
    monkeypatch.setattr(base, "BLOCK_BYTES", block_bytes)
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
    joined = refusal(root, [path], {"observation": ["obs"]}, Reading("terminal"))
    assert joined.startswith("'obs/image' has steps of shape [8, 8, 3], which cannot be joined with 'obs/eef_pos'")
    vectors = {"observation": ["obs/eef_pos", "obs/gripper"]}
    assert "there is only dones, the groups; pass --ends" in refusal(root, [path], vectors)
    stored = import_files([path], "mine", vectors, Reading("terminal"), root=root, validation=0)
    expected = Dataset.from_arrays(
        steps["observations"], steps["actions"], steps["rewards"], episode=episode_numbers(), ends="terminal",
        next_observation=np.concatenate((steps["observations"][1:], steps["observations"][:1])),
    )  # fmt: skip
    assert expected.size == COUNT
    assert stored.manifest["splits"]["train"]["fingerprint"] == expected.fingerprint()
    assert stored.manifest["fields"]["next_observation"] == "next_obs/eef_pos, next_obs/gripper"
    images = import_files([path], "images", {"observation": ["obs/image"]}, Reading("timeout"), root=root)
    assert images.arrays("train")["observation"].shape[1:] == (8, 8, 3)
    assert images.manifest["counts"]["gaps"] == 0


def test_a_next_observation_is_not_taken_from_another_group(tmp_path, root):
    write_robomimic(tmp_path / "demo.hdf5", flat_steps())
    stored = import_files([tmp_path / "demo.hdf5"], "mine", {"observation": ["states"]}, Reading("timeout"), root=root)
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
    unclear = refusal(root, [tmp_path / "robot"], reading=Reading(fill_reward="end"))
    assert "there is only next.done, episode_index; pass --ends" in unclear
    stored = import_files([tmp_path / "robot"], "mine", reading=Reading("timeout", "end"), root=root, validation=0)
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
    stored = import_files([tmp_path / "log.csv"], "mine", mapping, Reading(ends="timeout"), root=root, validation=0)
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
    assert "step 5; mend them, or pass --drop-nonfinite" in words
    stored = import_files([tmp_path / "data.npz"], "mine", reading=Reading(drop_nonfinite=True), root=root)
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


def pickled(path):
    np.savez(path, **(flat_steps() | {"observations": np.array([{}] * COUNT)}))


def bomb(path):
    """A few kilobytes that claim to be a terabyte."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 38, 1)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in flat_steps().items():
            data = io.BytesIO()
            np.save(data, array)
            file.writestr(f"{name}.npy", header.getvalue() + bytes(1000) if name == "observations" else data.getvalue())


def ragged_lists(path):
    columns = {"observation": [[1.0, 2.0], [1.0]], "action": [0.5, 0.5], "reward": [0.0, 0.0], "terminal": [0, 1]}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"timeout": [0, 0]}), path)


def linked(path):
    write_hdf5(path, {name: array for name, array in flat_steps().items() if name != "observations"})
    with h5py.File(path, "a") as file:
        file["observations"] = h5py.ExternalLink("/etc/passwd", "x")


def ragged_episodes(path):
    write_minari(path, flat_steps())
    with h5py.File(path, "a") as file:
        del file["episode_2/rewards"]
        file["episode_2/rewards"] = np.zeros(3)


def text(content):
    return lambda path: path.write_text(content)


HEADER = "observation_0,action_0,reward,terminal,timeout\n"
FILES = {
    "pickles in npz": ("data.npz", pickled, "'observations' holds pickled Python objects"),
    "a zip bomb": ("data.npz", bomb, "'observations' declares"),
    "one array": ("data.npy", lambda path: np.save(path, np.zeros(3)), "is not imported: such files can run code"),
    "a pickle": ("data.pkl", lambda path: path.write_bytes(b"\x80\x04."), "is not imported: such files can run code"),
    "no npz": ("data.npz", lambda path: path.write_bytes(b"PK\x03\x04" + bytes(50)), "truncated or damaged"),
    "no hdf5": ("data.h5", lambda path: path.write_bytes(bytes(99)), "is not a whole HDF5 file"),
    "no parquet": ("data.parquet", lambda path: path.write_bytes(bytes(99)), "is not a whole Parquet file"),
    "a link in hdf5": ("data.hdf5", linked, "has a link to another file in place of 'observations'"),
    "ragged lists": ("data.parquet", ragged_lists, "observation has lists of 1 to 2 numbers; all must be equally long"),
    "ragged episodes": ("data.hdf5", ragged_episodes, "different numbers of steps .*episode_2/rewards 3"),
    "unequal arrays": (
        "data.npz", lambda path: np.savez(path, **(flat_steps() | {"rewards": np.zeros(9)})), "rewards 9",
    ),
    "an empty csv": ("data.csv", text(""), "which is the observation\\? It has nothing"),
    "only a header": ("data.csv", text(HEADER), "holds no step"),
    "a word": ("data.csv", text(HEADER + "1,0,0,0,0\nx,0,0,0,0\n"), "line 3 has 'x' in the column"),
    "a short line": ("data.csv", text(HEADER + "1,0,0,0,0\n1,0\n"), "line 3 has 2 columns where"),
    "an odd flag": ("data.csv", text(HEADER + "1,0,0,maybe,0\n" * 3), "terminal is float64"),
    "a column twice": ("data.csv", text("a,a\n"), "two columns have the same name"),
    "no text": ("data.csv", lambda path: path.write_bytes(b"\xff\xfe\x00"), "is not text in UTF-8"),
    "an endless line": ("data.csv", text("a" * (1 << 21)), "has a line of more than"),
    "unknown names": ("data.csv", text("a,b\n1,2\n"), "which is the observation\\? It has 'a', 'b'"),
    "two candidates": ("data.csv", text("obs,state,action\n"), "both 'obs' and 'state' may be"),
    "another suffix": ("data.xlsx", text(""), "has an unknown suffix"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "write", "words"), FILES.values(), ids=FILES)
def test_a_bad_file_is_named_and_nothing_is_written(tmp_path, root, name, write, words):
    write(tmp_path / name)
    message = refusal(root, [tmp_path / name])
    assert re.search(words, message), message
    assert name in message


def test_what_is_not_there_is_refused(tmp_path, root):
    assert "does not exist" in refusal(root, [tmp_path / "absent.npz"])
    (tmp_path / "empty").mkdir()
    assert "holds no data/**/*.parquet (LeRobot)" in refusal(root, [tmp_path / "empty"])
    assert "no file was named" in refusal(root, [])
    write_npz(tmp_path / "data.npz", flat_steps())
    assert "has no 'pixels'; it has 'observations'" in refusal(
        root, [tmp_path / "data.npz"], {"observation": ["pixels"]}
    )


def test_more_than_the_limit_or_the_disk_is_refused_before_reading(tmp_path, root):
    write_npz(tmp_path / "data.npz", flat_steps())
    assert "--max-bytes allows 100 bytes" in refusal(root, [tmp_path / "data.npz"], max_bytes=100)
    sources = open_sources([tmp_path / "data.npz"], {})
    sources[0].nbytes = 1 << 62
    with pytest.raises(InputError, match="free; make room first"):
        check_size(sources, root, None)
    assert in_bytes(1_500_000_000) == "1.5 GB"


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(sorted(FORMATS)))
def test_damage_anywhere_is_an_input_error_or_harmless(tmp_path, data, kind):
    name, write = FORMATS[kind]
    path, root = tmp_path / name, tmp_path / "datasets"
    write(path, flat_steps())
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
            content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        import_files([path], "mine", root=root, replace=True).verify("train")
