import pytest

from drol.cli.main import main
from drol_reproduction.figures import overview


def test_the_overview_is_written_into_a_new_folder_and_its_numbers_are_printed(tmp_path, monkeypatch, capsys):
    computed = overview.compute_overview(2)
    monkeypatch.setattr(overview, "compute_overview", lambda: computed)
    document = tmp_path / "page.md"
    document.write_text("<!-- made by: drol paper figure 1 (caption) -->\nold\n<!-- end -->\n")
    assert main(["paper", "figure", "1", "--out", str(tmp_path / "new"), "--document", str(document)]) == 0
    assert document.read_text().splitlines()[1] == computed.caption()
    assert (tmp_path / "new" / "overview.png").read_bytes()[:4] == b"\x89PNG"
    assert computed.caption() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["9"], "unknown figure '9'. `drol paper figure --help` lists them all"),
        (["1", "--out", "a_file"], "--out is a_file, which is a file; name a folder"),
        (["1", "--document", "no.md"], "--document is no.md; there is no such file"),
        ([], "the following arguments are required: figure"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    assert main(["paper", "figure", *arguments]) == 2
    assert message in capsys.readouterr().err
