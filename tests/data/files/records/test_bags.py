import numpy as np
import pytest
from foreign_files import write_bag, write_json_mcap
from step_files import refusal

from drol.data.files import find_files, open_steps
from drol.data.files.options import ReadingOptions
from drol.data.files.records.messages import Bag
from drol.data.store.audit import audit_files

pytest.importorskip("rosbags")
MAPPING = {"observation": ["joint_states"], "action": ["command"]}


def read(path, mapping):
    file = open_steps(path, mapping)
    blocks = [block for block, _ in file.blocks()]
    return file, {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.mark.parametrize("kind", ["SQLITE3", "MCAP"])
@pytest.mark.parametrize("whole_folder", [True, False])
def test_topics_become_columns_at_the_times_of_the_action(tmp_path, kind, whole_folder):
    write_bag(tmp_path / "bag", kind)
    path = tmp_path / "bag" if whole_folder else next((tmp_path / "bag").glob("bag*"))
    assert find_files([tmp_path if whole_folder else path]) == [path]
    file, steps = read(path, MAPPING)
    assert file.dimensions("observation").names == ("joint_states/position[left]", "joint_states/position[right]")
    assert file.dimensions("observation").frames == ("base", "base")
    np.testing.assert_array_equal(
        steps["observation"][:, 0], np.arange(1, 60, 2)
    )  # the newest state, never a later one
    np.testing.assert_allclose(steps["action"][:, 0], np.arange(1, 60, 2) / 60)
    np.testing.assert_allclose(steps["time"], 1 + 0.01 * np.arange(1, 60, 2) + 0.004)
    assert file.is_episode
    assert any("1 messages of /command came before all topics had spoken" in note for note in file.notes)
    assert any("0.004 s old (/joint_states)" in note for note in file.notes)
    unused = {each.name: each.why for each in file.unused}
    assert unused["joint_states/effort"] == "it holds no numbers, or too many"
    assert "note/data" in unused
    assert "joint_states/header" in unused


def test_messages_in_json_are_read(tmp_path):
    write_json_mcap(tmp_path / "log.mcap")
    mapping = {"observation": ["pose/position/x", "pose/position/y"], "action": ["cmd/v"]}
    file, steps = read(tmp_path / "log.mcap", mapping)
    np.testing.assert_array_equal(steps["observation"], [[number, 2] for number in range(20)])
    assert file.names["time"] == "receive time"
    audit = audit_files([tmp_path / "log.mcap"], mapping, ReadingOptions("timeout", fill_reward="zero"))
    assert "receive time: 10 Hz" in str(audit)
    assert "a step for each message of /cmd, at the time when it was received" in str(audit)


@pytest.mark.parametrize("kind", ["SQLITE3", "MCAP"])
def test_a_damaged_bag_is_one_line(tmp_path, kind):
    write_bag(tmp_path / "bag", kind)
    path = next((tmp_path / "bag").glob("bag*"))
    content = path.read_bytes()
    for damaged in (b"", b"x" * 100, content[: len(content) // 2]):
        path.write_bytes(damaged)
        assert str(path) in refusal(lambda: list(open_steps(path, MAPPING).blocks()))


def test_a_type_that_is_none_is_refused_before_code_is_made_of_it(tmp_path):
    bag = Bag(tmp_path / "bag.mcap")
    bag.check_type("sensor_msgs/msg/JointState")
    bag.check_type("sensor_msgs/JointState")
    for name in ("a/msg/B(object): import os #", "a\nb/msg/C", "a/b/c/d", "", "a/msg/1"):
        assert "which is no type of ROS 2" in refusal(bag.check_type, name)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    write_bag(tmp_path / "bag", "SQLITE3")
    monkeypatch.setitem(__import__("sys").modules, "rosbags.highlevel", None)
    assert "install it with: pip install 'drol[ros]'" in refusal(open_steps, tmp_path / "bag", MAPPING)


def test_a_bag_of_ros_1_says_what_to_do(tmp_path):
    (tmp_path / "log.bag").write_bytes(b"#ROSBAG V2.0")
    assert "make it one of ROS 2 with: rosbags-convert" in refusal(open_steps, tmp_path / "log.bag", {})
