import json
import subprocess
import sys

import pytest
from step_files import write_dataset
from toys import random_rows

from drol import tasks
from drol.cli.main import main
from drol.tasks import Registry, TaskSource


@pytest.fixture(autouse=True)
def only_ogbench(monkeypatch, tmp_path):
    monkeypatch.setattr(tasks, "REGISTRY", Registry({"ogbench": "drol.tasks.ogbench"}))
    monkeypatch.setenv("HOME", str(tmp_path))


def listed(capsys, *arguments: str) -> str:
    assert main(["data", "list", *arguments]) == 0
    return capsys.readouterr().out


def test_every_dataset_has_a_line_with_its_size_and_how_to_get_it(capsys):
    lines = listed(capsys).splitlines()
    assert lines[0] == "ogbench: 83 datasets, 498 tasks, 1 here"
    [line] = [line for line in lines if line.strip().startswith("antmaze-large-navigate-v0 ")]
    assert line.split()[1:6] == ["1,000,000", "29", "8", "161", "MB"]
    assert "download, collect" in line
    [line] = [line for line in lines if "cube-octuple" in line]
    assert line.endswith("--dataset")
    [line] = [line for line in lines if line.strip().startswith("pointmaze-medium-navigate-v0 ")]
    assert "embedded" in line
    assert "2.23 MB" in line  # of the two files that are here
    assert max(map(len, lines)) < 140


def test_words_choose(capsys):
    lines = listed(capsys, "cube", "noisy").splitlines()
    assert lines[0] == "ogbench: 8 datasets, 48 tasks, 0 here"
    assert main(["data", "list", "nothing-like-it"]) == 2
    assert "no dataset has 'nothing-like-it' in its name" in capsys.readouterr().err


def test_all_names_every_task(capsys):
    lines = listed(capsys, "--all").splitlines()
    assert len(lines) == 498
    assert lines[0].split() == ["pointmaze-medium-navigate-singletask-v0", "here"]
    assert listed(capsys, "visual-scene-play", "task3", "--all").split() == [
        "visual-scene-play-singletask-task3-v0",
        "-",
    ]


def test_json_is_for_programs(capsys, tmp_path):
    rows = json.loads(listed(capsys, "--json", "pointmaze-medium-navigate"))
    assert len(rows) == 1
    assert rows[0]["dataset"] == "pointmaze-medium-navigate-v0"
    assert rows[0]["here"] is True
    assert rows[0]["file_bytes"] > 2_000_000
    assert len(rows[0]["tasks"]) == 6
    [row] = json.loads(listed(capsys, "--json", "scene-play", "singletask-task1"))[:1]
    assert row["path"] == f"{tmp_path}/.ogbench/data/scene-play-v0.npz"
    assert row["here"] is False
    assert row["file_bytes"] is None


def test_only_what_is_here(capsys):
    assert listed(capsys, "--here").splitlines()[0] == "ogbench: 1 dataset, 6 tasks, 1 here"


def test_listing_imports_neither_jax_nor_the_simulator():
    code = (
        "import sys; from drol.cli.main import main; main(['data', 'list']); "
        "sys.exit(str([name for name in ('jax', 'mujoco', 'gymnasium', 'ogbench') if name in sys.modules] or ''))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "") or answer.stderr == "\n", answer.stderr


def test_a_damaged_dataset_is_listed_as_such_beside_the_others(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_DATA", str(tmp_path))
    monkeypatch.setattr(tasks, "REGISTRY", Registry({"files": "drol.tasks.own_data"}))
    for name in ("bad", "good", "worse"):
        write_dataset(tmp_path, random_rows((5, 3)), name)
    reward = tmp_path / "bad" / "train" / "reward.npy"
    reward.write_bytes(reward.read_bytes().replace(b")", b" ", 1))
    (tmp_path / "worse" / "dataset.json").write_text("[" * 100_000)
    bad, good, worse = (line for line in listed(capsys).splitlines() if line.startswith("  files/"))
    assert f"damaged: {reward} has a damaged header" in bad
    assert good.endswith("import")
    assert "damaged: " in worse
    assert listed(capsys, "--all").split() == ["files/bad", "damaged", "files/good", "here", "files/worse", "damaged"]
    damages = {row["dataset"]: row["damaged"] for row in json.loads(listed(capsys, "--json"))}
    assert damages["files/good"] is None
    assert damages["files/bad"].startswith(str(reward))
    assert main(["data", "check", "bad"]) == main(["train", "files/bad", "--out", str(tmp_path / "run")]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == second
    assert f"{reward} has a damaged header" in first


class Plain(TaskSource):
    """A source that says nothing of its files."""

    name = "plain"

    def task_names(self):
        return ["mine"]

    def load(self, name, dataset_path=None):
        raise AssertionError("listing loads nothing")


def test_a_source_that_says_nothing_of_its_files_is_listed_by_task(capsys):
    tasks.register_task_source(Plain())
    lines = listed(capsys, "mine").splitlines()
    assert lines[0] == "plain: 1 dataset, 1 task, 0 here"
    assert lines[2].split() == ["mine", "-", "-", "-", "-", "-", "-"]
