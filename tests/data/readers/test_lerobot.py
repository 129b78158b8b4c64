import pytest
from foreign_files import LENGTHS, write_lerobot
from step_files import refusal

from drol.data.import_options import ReadingOptions
from drol.data.importing.audit import audit_files
from drol.data.importing.import_files import import_files
from drol.data.readers.metadata import describe_lerobot

READING = ReadingOptions(ends="timeout", fill_reward="end")


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize("embedded", [False, True])
def test_everything_of_a_folder_is_named(tmp_path, version, embedded):
    folder = tmp_path / "arm"
    write_lerobot(folder, version, embedded)
    stored = import_files([folder], "mine", reading=READING, root=tmp_path / "datasets", validation=0)
    dimensions = stored.dimensions
    assert dimensions["observation"].names == ("shoulder", "elbow", "goal")
    assert dimensions["action"].names == ("shoulder", "elbow")
    assert stored.manifest["counts"]["steps"] == sum(LENGTHS)
    assert stored.manifest["splits"]["train"]["episodes"] == len(LENGTHS)
    unused = {name: why for name, _, why in stored.manifest["unused"]}
    assert unused["observation.images.top"] == ("images in tables are not read" if embedded else "videos are not read")
    assert unused["task_index"].startswith("the number of the task (0 = pick the cube, 1 = place it); name it with")
    assert {"index", "frame_index"} <= unused.keys()
    assert any(
        "observation.environment_state stands beside observation.state" in each for each in stored.manifest["notes"]
    )
    assert stored.manifest["sampling"]["interval"] == pytest.approx(1 / 30, rel=1e-3)


def test_the_state_alone_and_tasks_are_taken_if_they_are_named(tmp_path):
    write_lerobot(tmp_path / "arm", "v3.0")
    mapping = {"observation": ["observation.state", "task_index"]}
    audit = audit_files([tmp_path / "arm"], mapping, READING)
    assert audit.dimensions["observation"].names == ("shoulder", "elbow", "task_index")
    assert "observation.environment_state" in [each.name for each in audit.unused]
    assert not any("stands beside" in note for note in audit.notes)


def test_a_star_leaves_images_out_by_name(tmp_path):
    write_lerobot(tmp_path / "arm", "v3.0", embedded_image=True)
    audit = audit_files([tmp_path / "arm"], {"observation": ["observation.*"]}, READING)
    assert audit.dimensions["observation"].names == ("shoulder", "elbow", "goal")
    assert "observation.images.top (an image)" in str(audit)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("info.json", "{"),
        ("info.json", "[]"),
        ("info.json", '{"features": {"a": 5}}'),
        ("info.json", '{"features": {}, "fps": 0}'),
        ("info.json", '{"features": {}, "fps": "30"}'),
        ("tasks.jsonl", "{}\n"),
    ],
)
def test_a_damaged_description_is_one_line(tmp_path, file, content):
    write_lerobot(tmp_path / "arm", "v2.1")
    (tmp_path / "arm" / "meta" / file).write_text(content)
    path = tmp_path / "arm" / "data" / "chunk-000" / "episode_000000.parquet"
    assert str(tmp_path / "arm" / "meta" / file) in refusal(describe_lerobot, path)
