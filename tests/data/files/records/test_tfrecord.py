import contextlib

import numpy as np
import pytest
from foreign_files import LENGTHS, write_tfrecord
from step_files import refusal

from drol.data.files import open_steps
from drol.data.files.options import ReadingOptions
from drol.data.files.records.tfrecord import masked_checksum, read_varints
from drol.data.store.importing import import_files
from drol.errors import InputError


def make_episodes():
    generator, episodes = np.random.default_rng(0), []
    for number, length in enumerate(LENGTHS):
        last = np.arange(length) == length - 1
        episodes.append({
            "steps/observation/state": generator.normal(size=(length, 2)).astype(np.float32),
            "steps/observation/image": np.array([b"jpeg"] * length),
            "steps/language_instruction": np.array([b"pick"] * length),
            "steps/action": generator.uniform(-1, 1, (length, 3)).astype(np.float32),
            "steps/reward": np.arange(length, dtype=np.float32),
            "steps/is_first": (np.arange(length) == 0).astype(np.int64),
            "steps/is_last": last.astype(np.int64),
            "steps/is_terminal": (last & (number != 1)).astype(np.int64),
            "episode_metadata/number": np.array([number + 300]),
        })  # fmt: skip
    return episodes


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "bridge-train.tfrecord-00000-of-00001"
    write_tfrecord(path, make_episodes(), masked_checksum)
    return path


def test_episodes_of_rlds_are_read(path, tmp_path):
    file, episodes = open_steps(path, {}), make_episodes()
    blocks = [block for block, _ in file.blocks()]
    for number, (block, episode) in enumerate(zip(blocks, episodes, strict=True)):
        state = episode["steps/observation/state"]
        np.testing.assert_array_equal(block["observation"], state[:-1])
        np.testing.assert_array_equal(block["next_observation"], state[1:])
        np.testing.assert_array_equal(block["action"], episode["steps/action"][:-1])
        assert block["terminal"].tolist() == [False] * (len(state) - 2) + [number != 1]
    unused = {each.name: each.why for each in file.unused}
    assert unused["observation/image"] == "packed images are not read"
    assert unused["language_instruction"] == "it is text or bytes"
    assert {"is_first", "is_last", "episode_metadata/number"} <= unused.keys()
    stored = import_files([path], "bridge", reading=ReadingOptions(), root=tmp_path / "datasets", validation=0)
    assert stored.manifest["splits"]["train"]["transitions"] == sum(LENGTHS) - len(LENGTHS)
    assert (stored.manifest["counts"]["terminals"], stored.manifest["counts"]["cuts"]) == (2, 1)


def test_damaged_records_are_one_line(path):
    content = path.read_bytes()
    for damaged in (content[:5], b"x" * 50, content[:-20], content[:3] + b"\xff" + content[4:], b""):
        path.write_bytes(damaged)
        assert str(path) in refusal(lambda: list(open_steps(path, {}).blocks()))


def test_no_flipped_byte_is_a_traceback(path):
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with contextlib.suppress(InputError):
            for block, _ in open_steps(path, {}).blocks():
                assert len(block["action"]) == len(block["observation"])


def test_whole_numbers_of_protobuf_are_read():
    data = np.array([0x00, 0x01, 0xAC, 0x02, 0x7F, *[0xFF] * 9, 0x01], np.uint8)
    assert read_varints(data).tolist() == [0, 1, 300, 127, -1]
    with pytest.raises(ValueError, match="no end"):
        read_varints(np.array([0x80], np.uint8))
    with pytest.raises(ValueError, match="too long"):
        read_varints(np.array([*[0x80] * 10, 0x01], np.uint8))
