import json
import os

import pytest
from step_files import refusal, write_dataset
from toys import random_rows

from drol.data.store.layout import MANIFEST
from drol.data.store.manifest import digest, read_manifest


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("manifest"), random_rows((5, 3, 4)), validation=0.5)


def signed(manifest):
    return json.dumps(manifest | {"sha256": digest(manifest)})


MANIFESTS = {
    "not JSON": (lambda manifest: "{", "not JSON"),
    "a list": (lambda manifest: "[]", "expected an object, got []"),
    "an entry twice": (lambda manifest: '{"format": 1, "format": 1}', "repeated key 'format'"),
    "NaN": (lambda manifest: '{"format": NaN}', "NaN is not a number"),
    "deep": (lambda manifest: "[" * 100_000, "not JSON"),
    "another format": (
        lambda manifest: signed(manifest | {"format": 1}),
        "format: expected 4 of a dataset, got 1; import",
    ),
    "an unknown entry": (lambda manifest: signed(manifest | {"extra": 1}), "extra: unknown key"),
    "a lost entry": (lambda manifest: signed({k: v for k, v in manifest.items() if k != "ends"}), "ends: missing"),
    "a changed entry": (lambda manifest: json.dumps(manifest | {"ends": "timeout"}), "does not match its checksum"),
}


@pytest.mark.parametrize(("change", "words"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_is_read_strictly(stored, tmp_path, change, words):
    (tmp_path / MANIFEST).write_text(change(stored.manifest))
    assert words in refusal(read_manifest, tmp_path)


def test_a_manifest_that_is_read_is_what_was_written(stored, tmp_path):
    (tmp_path / MANIFEST).write_text(signed(stored.manifest))
    assert read_manifest(tmp_path) == stored.manifest
    assert "is not a dataset; it has no dataset.json" in refusal(read_manifest, tmp_path / "absent")


# An entry by its path, and values that are invalid even with a correct checksum.
FORGED = {
    ("name",): (1, "", "../mine", "a\x1b[2J"),
    ("action_low",): (5, [], {}, "ab", [True, 0], ["a", "b"], [-1.0], [2.0, 2.0], [-(10**400), 0]),
    ("action_high",): ("ab", [1.0, 1.0, 1.0], [None, None]),
    ("actions_scaled",): (1, "yes", None),
    ("ends",): (1, "maybe", None, []),
    ("fields",): ([], {"observation": "o"}, {"action": 1, "observation": "o"}, dict.fromkeys("oax", "o")),
    ("counts",): ([], {}, 5),
    ("counts", "steps"): (-1, "1", 1.5, True, 10**30),
    ("counts", "not_finite"): ([], {"reward": "x"}, {"reward": -1}),
    ("counts", "converted"): (5, {"reward": 5}),
    ("transform",): (5, {"name": 1, "sha256": ""}, {"name": "a:b"}),
    ("dimensions",): (None, {}, {"observation": None}, {"observation": 5, "action": None}),
    ("dimensions", "action"): (
        {"names": ["a"], "units": [], "frames": []}, {"names": ["a", "a"], "units": [], "frames": []},
        {"names": ["a", "b"], "units": ["m"], "frames": []}, {"names": ["a", 5], "units": [], "frames": []}, [],
    ),
    ("sampling",): (5, {}, {"column": "t", "unit": "s", "interval": "1", "low": 1, "high": 1}),
    ("unused",): ({}, [5], [["a", "b"]], [["a", "b", 5]]),
    ("notes",): ({}, [5], "x"),
    ("files",): ({}, [5], [{"name": "a"}], [{"name": 5, "bytes": 1}], [{"name": "a", "bytes": -1}]),
    ("held_out",): (5, [], [0.1], ["a", 0], [0.1, -1], [0.1, 0.5]),
    ("splits",): ([], {}, None, {"train": None, "validation": None}, {"train": {}, "validation": {}}),
    ("splits", "train"): (None, [], 5, "x"),
    ("splits", "validation"): ([], 5, {}),
    ("splits", "train", "rows"): (-7, "7", 10**12, 10**30, 0, None),
    ("splits", "train", "episodes"): (0, -1, 10**12, "1"),
    ("splits", "train", "transitions"): (0, -1, "1", 2.0),
    ("splits", "train", "sha256"): (5, {}, [], {"observation": 5}),
    ("splits", "train", "sha256", "reward"): (5, "", "x" * 64, None),
    ("splits", "train", "fingerprint"): (5, "", None),
}  # fmt: skip
CASES = [(path, value) for path, values in FORGED.items() for value in values]


def changed(content, path, value):
    """A copy of nested entries with another value at a path."""
    if not path:
        return value
    return content | {path[0]: changed(content[path[0]], path[1:], value)}


@pytest.mark.parametrize(
    ("path", "value"), CASES, ids=[f"{'.'.join(path)} {str(value)[:20]!a}" for path, value in CASES]
)
def test_a_forged_entry_with_the_right_checksum_is_refused(stored, tmp_path, path, value):
    (tmp_path / MANIFEST).write_text(signed(changed(stored.manifest, path, value)))
    message = refusal(read_manifest, tmp_path)
    assert message.startswith(f"{tmp_path / MANIFEST}: ")
    assert message.endswith("; import the dataset again")
    assert len(message) < len(str(tmp_path)) + 300


def test_every_entry_is_forged_above(stored):
    def paths(content, path=()):
        yield path
        for name, value in content.items() if isinstance(content, dict) else ():
            yield from paths(value, (*path, name))

    tried = {path[0] for path in FORGED}
    assert {path[0] for path in paths(stored.manifest) if path} - tried == {"format", "sha256"}


def test_true_is_not_a_number(stored, tmp_path):
    (tmp_path / MANIFEST).write_text(signed(stored.manifest | {"format": True}))
    assert "format: expected 4 of a dataset, got True" in refusal(read_manifest, tmp_path)


def test_a_checksum_of_another_type_is_refused(stored, tmp_path):
    (tmp_path / MANIFEST).write_text(json.dumps(stored.manifest | {"sha256": 5}))
    assert "sha256: expected text, got 5" in refusal(read_manifest, tmp_path)


def test_a_manifest_is_a_plain_file_of_its_folder_and_not_endless(stored, tmp_path, monkeypatch):
    (tmp_path / MANIFEST).symlink_to(stored.folder / MANIFEST)
    assert "dataset.json cannot be used (it is a link)" in refusal(read_manifest, tmp_path)
    (tmp_path / MANIFEST).unlink()
    os.mkfifo(tmp_path / MANIFEST)
    assert "dataset.json cannot be used (it is no plain file)" in refusal(read_manifest, tmp_path)
    monkeypatch.setattr("drol.decoding.LARGEST_BYTES", 100)
    assert "dataset.json: the file is larger than 100 bytes" in refusal(read_manifest, stored.folder)
