import json
from pathlib import Path

import pytest

from drol.cli.main import main
from drol_reproduction.propositions import proposition_figures, proposition_numbers
from drol_reproduction.propositions.proposition_tables import COMMAND, proposition_tables


@pytest.fixture
def few_numbers(monkeypatch):
    """Limit the command to two updates of one actor and one figure; take its other numbers from the stored file."""
    stored = json.loads((Path(__file__).parents[3] / "results" / "propositions.json").read_text())
    monkeypatch.setattr(proposition_numbers, "cheap_numbers", lambda: stored)
    monkeypatch.setattr(proposition_numbers, "ACTORS", {"tiny": (1.0, 0.0, 2)})
    monkeypatch.setattr(proposition_figures, "FIGURES", {"3-bias": proposition_figures.bias_figure})


def test_numbers_are_printed_written_and_put_into_a_document(few_numbers, capsys, tmp_path):
    document, out = tmp_path / "page.md", tmp_path / "new" / "folder"
    document.write_text(f"# Page\n<!-- made by: {COMMAND} (ball) -->\nold\n<!-- end -->\n")
    assert main(["paper", "propositions", "--out", str(out), "--document", str(document)]) == 0
    written = json.loads((out / "propositions.json").read_text())
    tables = proposition_tables(written)
    printed = capsys.readouterr().out
    assert all(table in printed for table in tables.values())
    assert document.read_text() == f"# Page\n<!-- made by: {COMMAND} (ball) -->\n{tables['ball']}\n<!-- end -->\n"
    assert (out / "proposition-3-bias.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in out.iterdir()) == ["proposition-3-bias.png", "propositions.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "no/such/file.json"], "--json is no/such/file.json; it must be a file in a folder that exists"),
        (["--document", "no.md"], "--document is no.md; it must be a Markdown file that exists"),
        (["--out", "a_file"], "--out is a_file, which is a file; name a folder"),
        (["--figures", "x"], "unknown argument '--figures'"),
    ],
)
def test_a_mistake_is_said_before_anything_is_computed(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").touch()
    assert main(["paper", "propositions", *arguments]) == 2
    assert message in capsys.readouterr().err
