import json
from types import SimpleNamespace

import numpy as np
import pytest
from foreign_files import write_bag, write_json_mcap
from step_files import refusal

from drol.data.import_options import ReadingOptions
from drol.data.importing.audit import audit_files
from drol.data.readers import find_files, open_steps
from drol.data.readers.bag_messages import Bag

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
    assert unused["joint_states/effort"] == "it holds no numbers"
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


def write_messages(path, messages):
    """Write an MCAP file of JSON messages: topic, time in nanoseconds, content (or its bytes)."""
    from mcap.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("any", "jsonschema", b"{}")
        channels = {topic: writer.register_channel(topic, "json", schema) for topic, _, _ in messages}
        for topic, time, content in messages:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            writer.add_message(channels[topic], log_time=time, data=data, publish_time=time)
        writer.finish()


def test_topics_whose_columns_have_one_name_are_an_error(tmp_path):
    """Issue 29, point 2: the numbers of the other topic were imported."""
    path = tmp_path / "log.mcap"
    times = range(10**9, 2 * 10**9, 10**8)
    messages = [("/a/b", time, {"c": 1.0}) for time in times] + [("/a", time, {"b/c": -5.0}) for time in times]
    write_messages(path, [*messages, *(("/cmd", time, {"v": 0.5}) for time in times)])
    message = refusal(open_steps, path, {"observation": ["a/b/c"], "action": ["cmd/v"]})
    assert f"{path}: the topics /a/b and /a both have a column 'a/b/c'" in message
    write_messages(path, [("/a", time, {"b": {"c": 1.0}, "b/c": 2.0, "v": 0.5}) for time in times])
    assert "has no 'a/b/c'" in refusal(open_steps, path, {"observation": ["a/b/c"], "action": ["a/v"]})


@pytest.mark.parametrize("time", [2**63, 2**64 - 1])
def test_a_time_that_no_clock_shows_is_one_line(tmp_path, time):
    path = tmp_path / "log.mcap"
    write_messages(path, [("/cmd", each, {"v": 0.5, "x": 1.0}) for each in (10**9, 2 * 10**9, time)])
    mapping = {"observation": ["cmd/x"], "action": ["cmd/v"]}
    message = refusal(lambda: list(open_steps(path, mapping).blocks()))
    assert message == f"{path}: a message of /cmd has the time {time} ns; it must be from 0 to 2^63 - 1"


def connection(text, kind="MSG", name="a/msg/B"):
    from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat

    return SimpleNamespace(msgtype=name, msgdef=MessageDefinition(MessageDefinitionFormat[kind], text))


ARRAYS = "the definitions of messages have fixed arrays of more than 4,096 texts or messages"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("string[100000000] y", ARRAYS),
        ("string[+100000000] y", ARRAYS),
        ("float64 x\n  geometry_msgs/Point[70000] points", ARRAYS),
        ("string<=10[65537] y", ARRAYS),
        ("string[3000] a\nstring[3000] b", ARRAYS),
        ("module a { module msg { struct B { string y[100000000]; }; }; };", ARRAYS),
        ("module\ta { module msg { struct B { string<5> x, y[100000000]; }; }; };", ARRAYS),
        ("module a { module msg { const long N = 9999; struct B { string y[N * 2]; }; }; };", ARRAYS),
        ("module a { module msg { const long N = 1 << 9999999999; }; };", "computes numbers with <<"),
        ("float64 x\n" + "".join(f"uint8 Y{number}=1\n" for number in range(5000)), "more than 4,096 fields"),
        ("#" * (1 << 20) + "\nfloat64 x", "more than 1,048,576 characters"),
    ],
)
def test_a_definition_that_would_become_code_without_end_is_refused(tmp_path, text, words):
    """Issue 29, point 2: rosbags writes lines of code for each element, which took all memory."""
    kind = "IDL" if text.startswith("module") else "MSG"
    assert words in refusal(Bag(tmp_path / "bag.mcap").check_definitions, [connection(text, kind)])


@pytest.mark.parametrize(
    "text",
    [
        "float64[36] covariance\nuint8[1000000] data\nstring[3] names\nstring[] more\nint32 A=100000000 # [99999999]",
        'module a { module msg { typedef double double__36[36]; struct B { @verbatim (text="[x] << 3") double__36 c; '
        "string names[3]; sequence<string> more; }; }; };",
        80 * "=" + "\nIDL: a/msg/B\nmodule a { module msg { struct B { double x; }; }; };\n",
    ],
)
def test_a_usual_definition_is_accepted(tmp_path, text):
    bag, kind = Bag(tmp_path / "bag.mcap"), "MSG" if text.startswith("float64") else "IDL"
    bag.check_definitions([connection(text, kind), connection(text, kind), connection("", "NONE", "std_msgs/msg/Bool")])
    assert list(bag.parse(connection(text, kind))) == ["a/msg/B"]


def test_two_definitions_of_one_type_are_an_error(tmp_path):
    """One of them would be lost, and its topics would be read with the other's fields."""
    inner = f"{80 * '='}\nMSG: a/C\n"
    connections = [
        connection(f"a/C c\n{inner}float64 x\nfloat64 y\n", name="a/msg/A"),
        connection(f"a/C c\n{inner}float64 y\nfloat64 x\n", name="a/msg/B"),
    ]
    message = refusal(Bag(tmp_path / "bag.mcap").check_definitions, connections)
    assert "has two definitions of a/msg/C, but only one could be used" in message


def test_a_bag_with_a_huge_fixed_array_is_refused_before_code_is_made_of_it(tmp_path):
    from mcap.writer import Writer

    path = tmp_path / "strings.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        schema = writer.register_schema("pkg/msg/State", "ros2msg", b"float64 x\nstring[100000000] y\n")
        channel = writer.register_channel("/state", "cdr", schema)
        writer.add_message(channel, log_time=1, data=b"\0\1\0\0" + bytes(8), publish_time=1)
        writer.finish()
    assert ARRAYS in refusal(open_steps, path, {"action": ["state/x"]})


STATE = {"name": ["a", "b"], "position": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ({"name": ["b", "a"], "position": [2.0, 1.0]}, "has js/position[b], js/position[a] in js/position, the first"),
        ({"position": [1.0, 2.0]}, "has no names in js/position, the first message js/position[a], js/position[b]"),
        (STATE | {"position": [1.0, 10**400]}, "its values are too large, or not one list of numbers"),
        (STATE | {"position": 10**400}, "its values are too large, or not one list of numbers"),
        (STATE | {"position": [1.0]}, "has 1 numbers in js/position, the first message 2"),
        ({"name": ["a", "b"]}, "has no numbers in js/position, which is not in it"),
        (b'{"name": ["a", "b"], "position": [1, 2], "position": [3, 4]}', "has two values of 'position'"),
        (b"[" * 100_000, "is not a valid recording (maximum recursion depth"),
    ],
    ids=["other order", "no names", "huge in a list", "huge", "fewer", "missing", "twice", "deep"],
)
def test_a_message_that_differs_from_the_first_is_an_error(tmp_path, later, words):
    """Two publishers on one topic had their numbers exchanged; a huge number was called "0 numbers"."""
    path = tmp_path / "log.mcap"
    messages = [("/js", 10**9, STATE), ("/js", 2 * 10**9, later), ("/cmd", 3 * 10**9, {"v": 0.5})]
    write_messages(path, messages)
    mapping = {"observation": ["js/position"], "action": ["cmd/v"]}
    assert words in refusal(lambda: list(open_steps(path, mapping).blocks()))


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    write_bag(tmp_path / "bag", "SQLITE3")
    monkeypatch.setitem(__import__("sys").modules, "rosbags.highlevel", None)
    assert "install it with: pip install 'drol[ros]'" in refusal(open_steps, tmp_path / "bag", MAPPING)


def test_a_bag_of_ros_1_says_what_to_do(tmp_path):
    (tmp_path / "log.bag").write_bytes(b"#ROSBAG V2.0")
    assert "make it one of ROS 2 with: rosbags-convert" in refusal(open_steps, tmp_path / "log.bag", {})
