"""`drol data show` as it is typed."""

import pytest
from toys import tiny_task

from drol.cli.data import show as data_show
from drol.cli.main import main
from drol.tasks import DEFAULT_TASK


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_embedded_maze_is_described_and_drawn(here, capsys):
    assert main(["data", "show", DEFAULT_TASK]) == 0
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert printed["transitions"] == "100,000 in 100 trajectories"
    assert printed["validation"] == "10,000"
    assert printed["length"] == "1000 to 1000, median 1000"
    assert printed["reward"].startswith("-1 to 0,")
    assert printed["page"] == f"{DEFAULT_TASK}.html"
    assert [path.name for path in here.iterdir()] == [f"{DEFAULT_TASK}.html"]
    assert "Unusual episodes" in (here / f"{DEFAULT_TASK}.html").read_text()


def test_a_name_with_slashes_stays_in_the_folder(here, monkeypatch):
    monkeypatch.setattr(data_show, "load_task", lambda name, dataset: tiny_task())
    assert main(["data", "show", "../../door/human-v2"]) == 0
    assert [path.name for path in here.iterdir()] == ["-..-door-human-v2.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-task"], "unknown task 'no-such-task'"),
        ([DEFAULT_TASK, "--out", "picture.bmp"], "--out is picture.bmp; its name must end in .html"),
        ([DEFAULT_TASK, "--out", "no/such/page.html"], "it must be a file in an existing folder"),
        ([DEFAULT_TASK, "--dataset", "no.npz"], "dataset file no.npz does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(here, capsys, arguments, message):
    assert main(["data", "show", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert list(here.iterdir()) == []
