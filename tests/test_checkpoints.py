import errno
import hashlib
import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drol import checkpoints, formats
from drol.checkpoints import (
    ARRAYS,
    MANIFEST,
    DamagedCheckpoint,
    load_tree,
    newest_valid,
    read_metadata,
    save_tree,
    saved_steps,
    step_name,
)
from drol.errors import InputError


def tree(value: float = 1.0):
    return {
        "network": [jnp.full((2, 3), value), jnp.asarray([-0.0, jnp.inf, 1e-40, value])],
        "count": jnp.asarray(5, jnp.int32),
        "logged_step": np.int64(3),
        "flag": jnp.asarray([True, False]),
        "empty": jnp.zeros((0, 4)),
    }


def assert_same(found, expected):
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape
        assert ours.astype(theirs.dtype).tobytes() == theirs.tobytes()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_tree_comes_back_bit_for_bit(tmp_path):
    folder = tmp_path / "deeper" / "000000003"
    save_tree(folder, tree(0.1), {"step": 3, "note": "é\n"})
    found = load_tree(folder, tree())
    assert_same(found, tree(0.1))
    assert jax.tree.structure(found) == jax.tree.structure(tree())
    assert found["count"].shape == ()
    assert found["count"].dtype == jnp.int32
    assert int(found["logged_step"]) == 3
    assert read_metadata(folder) == {"step": 3, "note": "é\n"}
    assert sorted(path.name for path in folder.iterdir()) == [ARRAYS, MANIFEST]
    assert [path.name for path in folder.parent.iterdir()] == ["000000003"]


def test_shapes_alone_are_enough_to_load_into(tmp_path):
    save_tree(tmp_path / "1", {"a": jnp.arange(6.0).reshape(2, 3)}, {})
    found = load_tree(tmp_path / "1", {"a": jax.ShapeDtypeStruct((2, 3), jnp.float32)})
    np.testing.assert_array_equal(found["a"], np.arange(6).reshape(2, 3))


def test_arrays_that_are_not_contiguous_keep_their_values(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_tree(tmp_path / "1", {"turned": array.T, "part": array[:, ::2]}, {})
    found = load_tree(tmp_path / "1", {"turned": array.T, "part": array[:, ::2]})
    np.testing.assert_array_equal(found["turned"], array.T)
    np.testing.assert_array_equal(found["part"], array[:, ::2])


def test_saving_again_replaces_the_old(tmp_path):
    for value in (1.0, 2.0):
        save_tree(tmp_path / "000000001", tree(value), {"value": value})
    assert_same(load_tree(tmp_path / "000000001", tree()), tree(2.0))
    assert read_metadata(tmp_path / "000000001") == {"value": 2.0}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint, and the bytes of its two files."""
    folder = tmp_path_factory.mktemp("saved") / "000000001"
    save_tree(folder, tree(0.1), {"step": 1})
    return folder, contents(folder)


@settings(deadline=None, max_examples=150)
@given(share=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_a_changed_byte_of_the_arrays_is_noticed(saved, share, mask):
    folder, files = saved
    content = bytearray(files[ARRAYS])
    content[int(share * len(content))] ^= mask
    (folder / ARRAYS).write_bytes(content)
    (folder / MANIFEST).write_bytes(files[MANIFEST])
    with pytest.raises(DamagedCheckpoint, match=r"^arrays\.safetensors does not match its checksum$"):
        load_tree(folder, tree())


@settings(deadline=None, max_examples=400)
@given(share=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_a_changed_byte_of_the_manifest_is_noticed_or_means_the_same(saved, share, mask):
    folder, files = saved
    content = bytearray(files[MANIFEST])
    content[int(share * len(content))] ^= mask  # a space may become a line break
    (folder / ARRAYS).write_bytes(files[ARRAYS])
    (folder / MANIFEST).write_bytes(content)
    try:
        same = json.loads(content) == json.loads(files[MANIFEST])
    except ValueError:
        same = False
    if same:
        assert_same(load_tree(folder, tree()), tree(0.1))
        assert read_metadata(folder) == {"step": 1}
    else:
        with pytest.raises(DamagedCheckpoint, match=r"^manifest\.json "):
            load_tree(folder, tree())


@settings(deadline=None, max_examples=100)
@given(name=st.sampled_from([ARRAYS, MANIFEST]), share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_noticed(saved, name, share):
    folder, files = saved
    for each, content in files.items():
        (folder / each).write_bytes(content)
    (folder / name).write_bytes(files[name][: int(share * len(files[name]))])
    with pytest.raises(DamagedCheckpoint, match=name):
        load_tree(folder, tree())


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_missing_file_is_noticed(tmp_path, name):
    save_tree(tmp_path / "1", tree(), {})
    (tmp_path / "1" / name).unlink()
    with pytest.raises(DamagedCheckpoint, match=f"^{name} cannot be read"):
        load_tree(tmp_path / "1", tree())


def test_the_arrays_of_another_checkpoint_are_noticed(tmp_path):
    for name, value in (("1", 1.0), ("2", 2.0)):
        save_tree(tmp_path / name, tree(value), {})
    shutil.copy(tmp_path / "1" / ARRAYS, tmp_path / "2" / ARRAYS)
    with pytest.raises(DamagedCheckpoint, match="does not match its checksum"):
        load_tree(tmp_path / "2", tree())


def test_a_later_format_is_refused_by_its_number_and_nothing_older_takes_its_place(tmp_path, monkeypatch):
    save_tree(tmp_path / step_name(1), tree(), {})
    with monkeypatch.context() as patch:
        patch.setitem(formats.FORMATS, "checkpoint", 2)
        save_tree(tmp_path / step_name(2), tree(), {})
    for read in (lambda: load_tree(tmp_path / step_name(2), tree()), lambda: newest_valid(tmp_path, lambda _: tree())):
        with pytest.raises(InputError, match="format: expected 1 of a checkpoint, got 2: a newer drol wrote it"):
            read()


def test_values_that_are_not_finite_are_no_checkpoint_to_go_on_from(tmp_path):
    for step, value in ((1, 0.5), (2, np.nan), (3, np.inf)):
        save_tree(tmp_path / step_name(step), {"a": np.float32([1, value])}, {})
    step, found, skipped = newest_valid(tmp_path, lambda _: {"a": np.zeros(2, np.float32)})
    assert (step, found["a"].tolist()) == (1, [1.0, 0.5])
    assert skipped == [f"skipped the checkpoint of step {step}: a has values that are not finite" for step in (3, 2)]


@pytest.mark.parametrize("name", ["²", "77777", "0000000001x", "00000000000000", "notes.txt", "-00000001"])
@pytest.mark.parametrize("folder", [True, False])
def test_odd_names_are_ignored(tmp_path, name, folder):
    save_tree(tmp_path / step_name(1), {"a": np.ones(2)}, {})
    (tmp_path / name).mkdir() if folder else (tmp_path / name).write_text("mine")
    assert saved_steps(tmp_path) == [1]
    step, _, skipped = newest_valid(tmp_path, lambda _: {"a": np.zeros(2)})
    assert (step, skipped) == (1, [])


def test_a_file_and_a_manifest_of_brackets_are_damaged_checkpoints(tmp_path):
    for step in (1, 2):
        save_tree(tmp_path / step_name(step), {"a": np.ones(2)}, {})
    (tmp_path / step_name(2) / MANIFEST).write_text("[" * 200_000)
    (tmp_path / step_name(3)).write_text("a file")
    assert saved_steps(tmp_path) == [1, 2]
    step, _, skipped = newest_valid(tmp_path, lambda _: {"a": np.zeros(2)})
    assert step == 1
    assert [words.split(" (")[0] for words in skipped] == [
        f"skipped the checkpoint of step {step}: manifest.json cannot be read" for step in (3, 2)
    ]


@pytest.mark.parametrize("name", ["format", "sha256", "leaves", "metadata"])
@pytest.mark.parametrize("value", [None, [], "x", True])
def test_a_manifest_with_the_right_checksum_and_wrong_entries_is_damaged(tmp_path, name, value):
    save_tree(tmp_path / "1", {"a": np.ones(2)}, {})
    manifest = json.loads((tmp_path / "1" / MANIFEST).read_text()) | {name: value}
    manifest["manifest_sha256"] = checkpoints.manifest_digest(manifest)
    (tmp_path / "1" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedCheckpoint):
        load_tree(tmp_path / "1", {"a": np.zeros(2)})


def test_arrays_that_are_no_safetensors_file_are_damaged(tmp_path):
    save_tree(tmp_path / "1", {"a": np.ones(2)}, {})
    (tmp_path / "1" / ARRAYS).write_bytes(b"nonsense")
    manifest = json.loads((tmp_path / "1" / MANIFEST).read_text())
    manifest["sha256"] = hashlib.sha256(b"nonsense").hexdigest()
    manifest["manifest_sha256"] = checkpoints.manifest_digest(manifest)
    (tmp_path / "1" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedCheckpoint, match=r"^arrays\.safetensors cannot be read"):
        load_tree(tmp_path / "1", {"a": np.zeros(2)})


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"a": jnp.zeros((2, 4))}, "a is float32[2, 3] where float32[2, 4] is expected"),
        ({"a": jnp.zeros((2, 3), jnp.int32)}, "a is float32[2, 3] where int32[2, 3] is expected"),
        ({"a": jnp.zeros(())}, "a is float32[2, 3] where float32[] is expected"),
        ({"a": jnp.zeros((2, 3)), "b": jnp.zeros(1)}, "its arrays have another structure; b is only in one of them"),
        ({"a": [jnp.zeros((2, 3))]}, "its arrays have another structure; a is only in one of them"),
    ],
)
def test_a_tree_of_another_shape_type_or_structure_is_named(tmp_path, like, message):
    save_tree(tmp_path / "1", {"a": jnp.zeros((2, 3))}, {})
    with pytest.raises(DamagedCheckpoint) as caught:
        load_tree(tmp_path / "1", like)
    assert str(caught.value) == message


def finite(value: float = 1.0):
    return {"network": [jnp.full((2, 3), value), jnp.asarray([-0.0, value])], "count": jnp.asarray(5, jnp.int32)}


def test_the_newest_whole_checkpoint_is_found_and_the_skipped_are_named(tmp_path):
    for step in (10, 200, 3000):
        save_tree(tmp_path / step_name(step), finite(float(step)), {})
    assert saved_steps(tmp_path) == [10, 200, 3000]
    step, found, skipped = newest_valid(tmp_path, lambda _: finite())
    assert (step, skipped) == (3000, [])
    assert_same(found, finite(3000.0))
    (tmp_path / step_name(3000) / MANIFEST).write_bytes(b"{}")
    arrays = tmp_path / step_name(200) / ARRAYS
    arrays.write_bytes(arrays.read_bytes()[:-1])
    step, found, skipped = newest_valid(tmp_path, lambda _: finite())
    assert step == 10
    assert_same(found, finite(10.0))
    assert skipped == [
        "skipped the checkpoint of step 3000: manifest.json does not match its checksum",
        "skipped the checkpoint of step 200: arrays.safetensors does not match its checksum",
    ]


def test_without_a_checkpoint_the_newest_is_step_zero(tmp_path):
    assert newest_valid(tmp_path / "absent", lambda _: tree()) == (0, None, [])
    (tmp_path / ".000000001.partial").mkdir()
    assert newest_valid(tmp_path, lambda _: tree()) == (0, None, [])
    (tmp_path / "000000002").mkdir()
    step, found, skipped = newest_valid(tmp_path, lambda _: tree())
    assert (step, found, len(skipped)) == (0, None, 1)


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("target", ["000000001", "000000002"])
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_partial(tmp_path, monkeypatch, call, target):
    save_tree(tmp_path / "000000001", tree(1.0), {})
    before = contents(tmp_path)
    calls = []

    def write_synced(path, data):
        path.write_bytes(data[: len(data) // 2])
        calls.append(path)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_synced", write_synced)
    with pytest.raises(OSError, match="No space left on device"):
        save_tree(tmp_path / target, tree(2.0), {})
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["000000001"]


def test_an_error_while_moving_into_place_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    save_tree(tmp_path / "000000001", tree(1.0), {})
    before = contents(tmp_path)
    moved = Path.rename

    def rename(self, target):
        if self.name == ".000000001.partial":
            raise OSError(errno.EIO, "Input/output error")
        return moved(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="Input/output error"):
        save_tree(tmp_path / "000000001", tree(2.0), {})
    assert contents(tmp_path) == before


# One import for all kills: this process forks a child that saves as the trainer does, and kills it after some time.
STORM = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from drol.checkpoints import save_tree, saved_steps, step_name
from drol.runs.directory import RunDirectory

directory = RunDirectory(Path(sys.argv[1]))

def save_for_ever():
    step = max(saved_steps(directory.checkpoints), default=0)
    while True:
        step += 1
        tree = {"a": np.full((100, 100), step, np.float32), "step": np.int32(step)}
        save_tree(directory.checkpoints / step_name(step), tree, {"step": step})
        directory.drop_old_checkpoints()
        print("saved", step, flush=True)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        save_for_ever()
    time.sleep(float(line))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


def test_kills_at_random_moments_never_lose_a_checkpoint_that_was_saved(tmp_path):
    like = {"a": np.zeros((100, 100), np.float32), "step": np.int32(0)}
    command = [sys.executable, "-W", "ignore", "-c", STORM, str(tmp_path)]
    generator = random.Random(0)
    promised, begun, interrupted = 0, 0, 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(15):
            process.stdin.write(f"{generator.uniform(0.02, 0.1)}\n")
            process.stdin.flush()
            for line in iter(process.stdout.readline, ""):
                if line.endswith("killed\n"):  # perhaps behind a line that the kill cut short
                    break
                promised = int(line.split()[1])
            else:
                raise AssertionError("the saving process ended by itself")
            step, found, _ = newest_valid(tmp_path / "checkpoints", lambda _: like)
            assert step >= max(promised, begun)
            if step:
                assert int(found["step"]) == step
                np.testing.assert_array_equal(found["a"], np.full((100, 100), step))
            begun = step
            interrupted += any((tmp_path / "checkpoints").glob(".*.partial"))
        process.stdin.close()
    assert process.returncode == 0
    assert promised > 0
    assert interrupted > 0  # some kill came in the middle of a save


def test_metadata_may_hold_numbers_that_are_not_finite(tmp_path):
    save_tree(tmp_path / "saved", tree(), {"validation": [{"loss": math.nan, "value": -math.inf}]})
    (found,) = read_metadata(tmp_path / "saved")["validation"]
    assert math.isnan(found["loss"])
    assert found["value"] == -math.inf
