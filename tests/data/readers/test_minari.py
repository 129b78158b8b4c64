import json

import numpy as np
import pytest
from foreign_files import LENGTHS, record_minari
from step_files import refusal

from drol.data.importing.audit import audit_files
from drol.data.importing.import_files import Scaling, import_files
from drol.data.readers.metadata import describe_minari

pytest.importorskip("minari")


def test_every_format_of_minari_gives_the_same_dataset(tmp_path, monkeypatch):
    found = {}
    for kind in ("hdf5", "arrow", "parquet"):
        folder = record_minari(tmp_path / "minari", kind, monkeypatch)
        found[kind] = import_files([folder], kind, root=tmp_path / "datasets", validation=0).manifest
    prints = {manifest["splits"]["train"]["fingerprint"] for manifest in found.values()}
    assert len(prints) == 1
    lengths = [LENGTHS[number % 3] for number in range(12)]
    for manifest in found.values():
        assert manifest["splits"]["train"]["transitions"] == sum(lengths)  # none is lost, none is made of padding
        assert (manifest["counts"]["terminals"], manifest["counts"]["cuts"]) == (6, 6)
        assert (manifest["action_low"], manifest["action_high"]) == ([-2, -3], [0.5, 3])
        names = ["observations/goal", "observations/q[0]", "observations/q[1]"]
        assert manifest["dimensions"]["observation"]["names"] == names
        assert "actions are scaled from the box of the environment that lies beside the data" in manifest["notes"]
        assert "infos/effort" in [name for name, _, _ in manifest["unused"]]


def test_a_box_that_is_given_comes_first(tmp_path, monkeypatch):
    folder = record_minari(tmp_path / "minari", "hdf5", monkeypatch, episodes=3)
    scaling = Scaling(low=(-4.0,), high=(4.0,))
    stored = import_files([folder], "mine", scaling=scaling, root=tmp_path / "datasets", validation=0)
    assert stored.box.low == (-4, -4)
    assert not any("beside the data" in note for note in stored.manifest["notes"])


@pytest.mark.parametrize(
    ("space", "box"),
    [
        ({"type": "Box", "low": [[-1.0], [-2.0]], "high": [[1.0], [2.0]]}, ((-1, -2), (1, 2))),
        ({"type": "Box", "low": [-np.inf], "high": [1.0]}, None),
        ({"type": "Discrete", "n": 3}, None),
    ],
)
def test_spaces_are_read(tmp_path, space, box):
    (tmp_path / "metadata.json").write_text(json.dumps({"action_space": json.dumps(space), "data_format": "hdf5"}))
    found = describe_minari(tmp_path / "main_data.hdf5")
    assert (found.box and (found.box.low, found.box.high)) == box
    assert bool(found.notes) == (box is None)


@pytest.mark.parametrize("content", ["{", '{"action_space": "{"}', '{"action_space": {}}', '{"action_space": "5"}'])
def test_a_description_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / "metadata.json").write_text(content)
    assert str(tmp_path / "metadata.json") in refusal(describe_minari, tmp_path / "main_data.hdf5")


def test_other_files_of_that_name_are_left_alone(tmp_path):
    assert describe_minari(tmp_path / "main_data.hdf5") is None
    (tmp_path / "metadata.json").write_text('{"about": "something else"}')
    assert describe_minari(tmp_path / "main_data.hdf5") is None


@pytest.mark.parametrize("bound", [float(np.finfo(np.float32).max), 1e308, 1e6])
def test_bounds_in_which_the_actions_are_lost_are_an_error(tmp_path, monkeypatch, bound):
    """Issue 29, point 3: the actions became 1e-39, or 0 with a warning."""
    folder = record_minari(tmp_path / "minari", "hdf5", monkeypatch, episodes=3)
    path = next(folder.rglob("metadata.json"))
    space = {"type": "Box", "dtype": "float32", "shape": [2], "low": [-bound] * 2, "high": [bound] * 2}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"action_space": json.dumps(space)}))
    message = refusal(import_files, [folder], "mine", root=tmp_path / "datasets")
    assert f"the action bounds of dimension 0 are -{bound:g} to {bound:g}, but the data reach from -" in message
    assert not (tmp_path / "datasets").exists()
    [problem] = audit_files([folder]).problems
    assert "but the data reach from" in problem
    stored = import_files([folder], "mine", scaling=Scaling(from_data=True), root=tmp_path / "datasets", validation=0)
    assert stored.box.low[0] > -2.1
