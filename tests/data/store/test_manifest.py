import json

import pytest
from step_files import refusal, write_dataset
from toys import random_rows

from drol.data.store.layout import MANIFEST
from drol.data.store.manifest import ENTRIES, SPLIT_ENTRIES, digest, read_manifest

ODD = {int: "1", str: 1, list: {}, dict: [], bool: 1}  # a value of another type


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("manifest"), random_rows((5, 3, 4)), validation=0.5)


def signed(manifest):
    return json.dumps(manifest | {"sha256": digest(manifest)})


MANIFESTS = {
    "not JSON": (lambda manifest: "{", "cannot be read"),
    "a list": (lambda manifest: "[]", "is not the manifest of a dataset"),
    "an entry twice": (lambda manifest: '{"format": 1, "format": 1}', "an entry is there twice"),
    "NaN": (lambda manifest: '{"format": NaN}', "NaN is not a number"),
    "deep": (lambda manifest: "[" * 100_000, "cannot be read"),
    "another format": (lambda manifest: signed(manifest | {"format": 1}), "has format 1; this version reads 2"),
    "an unknown entry": (lambda manifest: signed(manifest | {"extra": 1}), "lacks or should not have 'extra'"),
    "a lost entry": (lambda manifest: signed({k: v for k, v in manifest.items() if k != "ends"}), "'ends'"),
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


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "format"])
def test_an_entry_of_another_type_is_refused(stored, tmp_path, name):
    manifest = stored.manifest | {name: ODD[ENTRIES[name]]}
    (tmp_path / MANIFEST).write_text(json.dumps(manifest) if name == "sha256" else signed(manifest))
    assert f"as {name!r}, which has another type; import the dataset again" in refusal(read_manifest, tmp_path)


def test_true_is_not_a_number(stored, tmp_path):
    (tmp_path / MANIFEST).write_text(signed(stored.manifest | {"format": True}))
    assert "has format True; this version reads 2" in refusal(read_manifest, tmp_path)


@pytest.mark.parametrize("name", SPLIT_ENTRIES)
def test_a_split_is_read_strictly(stored, tmp_path, name):
    train = stored.manifest["splits"]["train"]
    for odd, words in (
        (train | {name: ODD[SPLIT_ENTRIES[name]]}, f"as {name!r}, which has another type"),
        ({key: value for key, value in train.items() if key != name}, f"lacks or should not have {name!r}"),
        ([], "as 'train', which has another type"),
    ):
        manifest = stored.manifest | {"splits": stored.manifest["splits"] | {"train": odd}}
        (tmp_path / MANIFEST).write_text(signed(manifest))
        assert words in refusal(read_manifest, tmp_path)
