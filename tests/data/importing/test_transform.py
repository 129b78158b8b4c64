"""A function of the user changes the columns of each file; the examples of docs/data.md are run."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
from foreign_files import record_minari, write_bag, write_d3rlpy, write_lerobot
from step_files import FORMATS, flat_steps, refusal, write_minari, write_npz, write_robomimic

from drol.data.import_options import ReadingOptions
from drol.data.importing.audit import audit_files, audit_stored
from drol.data.importing.import_files import import_files
from drol.data.importing.transform import Transform, TransformedFile

ROOT = Path(__file__).parents[3]
HEAD = "run,time,angle,speed,gripper,goal,torque\n"


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Write the module of docs/data.md to the current folder; its first line has its name."""
    page = (ROOT / "docs" / "data.md").read_text()
    source = page.partition("```python\n# my_data.py\n")[2].partition("```")[0]
    (tmp_path / "my_data.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_data", raising=False)
    yield source
    sys.modules.pop("my_data", None)


def write_log(path, order=1, gap=False):
    lines = []
    for run in ("a", "b"):
        for step in range(6):
            speed = "" if gap and step in (3, 4) else str(step)
            lines.append(f"{run},{0.1 * step:.1f},{0.5 * step},{speed},{step},{6},{0.1 * step}\n")
    path.write_text(HEAD + "".join(lines[::order]))
    return path


def imported(path, name, transform, *observation, **options):
    mapping = {"observation": list(observation), "action": ["torque"], "episode": ["run"]}
    reading = ReadingOptions("timeout", **options)
    root = path.parent / "datasets"
    return import_files([path], name, mapping, reading, root=root, validation=0, transform=transform)


def test_the_first_example_computes_a_reward(examples, tmp_path):
    stored = imported(write_log(tmp_path / "log.csv"), "mine", "my_data:add_reward", "gripper", "goal")
    arrays = stored.arrays("train")
    step = np.arange(5)
    np.testing.assert_allclose(arrays["reward"][:5], step - 6 - 0.01 * (0.1 * step) ** 2, rtol=1e-6)
    digest = hashlib.sha256(examples.encode()).hexdigest()
    assert stored.manifest["transform"] == {"name": "my_data:add_reward", "sha256": digest}
    notes = audit_stored("mine", tmp_path / "datasets").notes
    assert "the columns are those that the transform my_data:add_reward returns" in notes


def test_the_second_example_fills_gaps_within_episodes(examples, tmp_path):
    path = write_log(tmp_path / "log.csv", gap=True)
    assert "NaN" in refusal(imported, path, "bad", None, "speed", fill_reward="zero")
    arrays = imported(path, "mine", "my_data:fill_gaps", "speed", fill_reward="zero").arrays("train")
    np.testing.assert_array_equal(arrays["observation"][:, 0], [0, 1, 2, 2, 2, 5] * 2)


def test_the_third_example_sorts_a_log(examples, tmp_path):
    expected = imported(write_log(tmp_path / "log.csv"), "good", None, "speed", fill_reward="zero")
    path = write_log(tmp_path / "log.csv", order=-1)
    assert "time runs backwards" in refusal(imported, path, "bad", None, "speed", fill_reward="zero")
    stored = imported(path, "mine", "my_data:sort_rows", "speed", fill_reward="zero")
    fingerprints = [each.manifest["splits"]["train"]["fingerprint"] for each in (stored, expected)]
    assert fingerprints[0] == fingerprints[1]


def test_the_fourth_example_derives_observations(examples, tmp_path):
    path = write_log(tmp_path / "log.csv")
    stored = imported(path, "mine", "my_data:derive", "sine", "cosine", "acceleration", "history", fill_reward="zero")
    arrays = stored.arrays("train")
    np.testing.assert_allclose(arrays["observation"][7, :3], [np.sin(0.5), np.cos(0.5), 10.0], rtol=1e-6)
    np.testing.assert_array_equal(arrays["observation"][6:9, 3:], [[0, 0, 0], [0, 0, 1], [0, 1, 2]])  # of run b alone
    assert stored.dimensions["observation"].names == (
        "sine", "cosine", "acceleration", "history[0]", "history[1]", "history[2]",
    )  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_all_its_columns(tmp_path, kind):
    name, write = FORMATS[kind]
    write(tmp_path / name, flat_steps())
    plain = import_files([tmp_path / name], "plain", root=tmp_path / "d", validation=0)
    same = import_files([tmp_path / name], "same", root=tmp_path / "d", validation=0, transform=lambda columns: columns)
    assert same.manifest["splits"] == plain.manifest["splits"]
    assert same.dimensions == plain.dimensions


@pytest.mark.parametrize("write", [write_minari, write_robomimic, write_d3rlpy])
def test_episodes_in_groups_have_their_number_and_next_observations(tmp_path, write):
    if write is write_d3rlpy:
        write(tmp_path / "data.hdf5")
    else:
        write(tmp_path / "data.hdf5", flat_steps())
    mapping = {"observation": ["obs"]} if write is write_robomimic else {}
    reading = ReadingOptions("timeout")
    options = {"root": tmp_path / "d", "validation": 0}
    plain = import_files([tmp_path / "data.hdf5"], "plain", mapping, reading, **options)
    same = import_files([tmp_path / "data.hdf5"], "same", mapping, reading, transform=dict, **options)
    assert same.manifest["splits"] == plain.manifest["splits"]


@pytest.mark.parametrize("kind", ["arrow", "hdf5"])
def test_minari_gives_next_observations(tmp_path, monkeypatch, kind):
    folder = record_minari(tmp_path / "m", kind, monkeypatch, episodes=4)
    options = {"root": tmp_path / "d", "validation": 0}
    plain = import_files([folder], "plain", **options)
    same = import_files([folder], "same", transform=dict, **options)
    assert same.manifest["splits"] == plain.manifest["splits"]


def test_lerobot_and_bags_give_their_columns(tmp_path):
    write_lerobot(tmp_path / "lerobot", "v3.0")
    seen = {}

    def look(columns):
        seen.update({name: (array.shape, array.dtype.kind) for name, array in columns.items()})
        return columns

    options = {"root": tmp_path / "d", "validation": 0, "transform": look}
    reading = ReadingOptions("timeout", "zero")
    stored = import_files([tmp_path / "lerobot"], "arm", reading=reading, **options)
    assert seen["observation.state"] == ((18, 2), "f")
    assert stored.dimensions["observation"].names == ("shoulder", "elbow", "goal")
    assert any("videos are not read" in each[2] for each in stored.manifest["unused"])
    pytest.importorskip("rosbags")
    write_bag(tmp_path / "bag", "MCAP")
    mapping = {"observation": ["joint_states/position"], "action": ["command/data"]}
    import_files([tmp_path / "bag"], "bag", mapping, reading, **options)
    assert seen["joint_states/position"] == ((30, 2), "f")
    assert seen["time"] == ((30,), "f")


def test_columns_that_are_not_returned_and_arrays_that_are_no_steps_are_named(tmp_path):
    write_npz(tmp_path / "data.npz", flat_steps() | {"temperature": np.zeros(60), "gains": np.zeros(3)})
    seen = []

    def without_temperature(columns):
        seen.append(sorted(columns))
        del columns["temperature"]
        return columns

    audit = audit_files([tmp_path / "data.npz"], transform=without_temperature)
    reasons = {each.name: each.why for each in audit.unused}
    assert reasons["temperature"] == "the transform does not return it"
    assert reasons["gains"] == "it has 3 rows, the steps 60"
    assert len(seen) == 1  # one file is read and transformed once
    assert "gains" not in seen[0]


def fail(columns):
    return columns["missing"]


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (fail, "raised KeyError: 'missing' (test_transform.py, line "),
        (lambda columns: None, "returned NoneType; it must return a dict of arrays by name"),
        (lambda columns: {1: columns["actions"]}, "returned dict; it must return a dict of arrays by name"),
        (lambda columns: columns | {"rewards": 1.0}, "returned float64 of shape [] as 'rewards'; it must be an array"),
        (lambda columns: columns | {"rewards": [None] * 60}, "returned object of shape [60] as 'rewards'"),
        (lambda columns: columns | {"rewards": [[1], [1, 2]]}, "returned steps of different shapes in 'rewards'"),
        (lambda columns: columns | {"rewards": np.zeros(59)}, "columns of different lengths (observations 60"),
        (lambda columns: {"actions": columns["actions"]}, "cannot tell which column is the observation"),
        (lambda columns: columns | {"rewards": np.full(60, np.nan)}, "rewards has values that are NaN"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_transform_is_one_line(tmp_path, transform, words):
    write_npz(tmp_path / "data.npz", flat_steps())
    message = refusal(import_files, [tmp_path / "data.npz"], "mine", root=tmp_path / "d", transform=transform)
    assert words in message
    assert str(tmp_path / "data.npz") in message
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_data", "--transform is 'my_data'; it must be module:function"),
        ("my_data:absent", "--transform my_data:absent: the module my_data has no function 'absent'"),
        ("no_such_module:f", "--transform no_such_module:f: module 'no_such_module' is neither here nor installed"),
        ("broken_module:f", "--transform broken_module:f: to import broken_module raised ZeroDivisionError"),
    ],
)
def test_a_function_that_is_not_there_is_one_line(examples, tmp_path, name, words):
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    assert words in refusal(Transform.load, name)


def test_a_file_that_does_not_fit_in_memory_is_refused(tmp_path, monkeypatch):
    write_npz(tmp_path / "data.npz", flat_steps())
    monkeypatch.setattr("drol.data.importing.transform.free_memory", lambda: 100)
    message = refusal(TransformedFile, tmp_path / "data.npz", {}, Transform.load(dict))
    assert "a transform takes 3 times as much memory, and 100 bytes are free; split the file" in message
