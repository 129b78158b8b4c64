import numpy as np
import pytest
from step_files import flat_steps, refusal

from drol.data.readers import npz
from drol.data.readers.npz import NpzFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.npz"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block_bytes", [300, 1 << 23])
def test_steps_are_read_in_blocks_whatever_the_order_of_their_bytes(path, monkeypatch, save, order, block_bytes):
    monkeypatch.setattr("drol.data.readers.fields.BLOCK_BYTES", block_bytes)
    steps = flat_steps()
    save(path, **{name: np.asarray(array, order=order) for name, array in steps.items()})
    blocks, shares = zip(*NpzFile(path, {}).blocks(), strict=True)
    assert (len(blocks) > 1) == (block_bytes == 300)
    assert shares[-1] == 1
    for field, name in (("observation", "observations"), ("action", "actions"), ("terminal", "terminals")):
        np.testing.assert_array_equal(np.concatenate([block[field] for block in blocks]), steps[name])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_changed_byte_is_found_when_all_steps_are_read(path, order):
    steps = {name: np.asarray(array, order=order) for name, array in flat_steps().items()}
    np.savez(path, **steps)
    content = bytearray(path.read_bytes())
    content[content.index(steps["observations"].tobytes(order=order)) + 5] ^= 1
    path.write_bytes(content)
    assert "truncated or damaged" in refusal(lambda: list(NpzFile(path, {}).blocks()))


def test_a_large_array_in_fortran_order_is_refused_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr(npz, "LARGEST_COLUMN_MAJOR", 500)
    np.savez(path, **{name: np.asfortranarray(array) for name, array in flat_steps().items()})
    assert "observations is large and in Fortran order; save numpy.ascontiguousarray" in refusal(NpzFile, path, {})
    np.savez(path, **flat_steps())
    NpzFile(path, {})


def test_a_single_value_is_not_a_field_of_steps(path):
    np.savez(path, **(flat_steps() | {"rewards": np.float32(1)}))
    assert "rewards is a single value; it must have a row for each step" in refusal(NpzFile, path, {})


def test_episodes_may_be_text(path):
    steps = flat_steps() | {
        "episode": np.array(["first", "second run"])[np.arange(60) // 30],
        "label": np.array(["x"] * 60),
    }
    np.savez(path, **steps)
    file = NpzFile(path, {})
    found = np.concatenate([block["episode"] for block, _ in file.blocks()])
    assert found.tolist() == steps["episode"].tolist()
    assert [(each.name, each.why) for each in file.unused] == [("label", "it is text")]
    assert "it must be numbers" in refusal(NpzFile, path, {"observation": ["label"]})
