"""`drol compare` as it is typed."""

import pytest
from made_results import made_group, made_result

from drol.cli.main import main
from drol.results.result_files import write_results


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "results.csv"
    write_results([*made_group("fql", [45, 46, 47]), *made_group("drol", [2, 3, 4])], path)
    return path


def test_the_table_is_printed_and_the_page_written(file, tmp_path, capsys):
    page = tmp_path / "compare.html"
    assert main(["compare", str(file), "--out", str(page)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("maze: success (%), last evaluation\n")
    assert printed.endswith(f"\nwrote {page}\n")
    assert "<h2>Learning</h2>" in page.read_text()


def test_a_worse_group_fails_only_if_asked_to(file, capsys):
    assert main(["compare", str(file)]) == 0
    assert "  worse\n" in capsys.readouterr().out
    assert main(["compare", str(file), "--fail-if-worse"]) == 1
    assert main(["compare", str(file), "--fail-if-worse", "--baseline", "drol"]) == 0


def test_a_difference_is_named_with_a_flag(file, capsys):
    assert main(["compare", str(file), "--difference", "10"]) == 0
    assert "  seeds for 10  " in capsys.readouterr().out


def test_a_broken_row_is_named_and_the_exit_code_says_so(file, capsys):
    file.write_text(file.read_text().replace(",training,", ",training?,", 1))
    assert main(["compare", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(
        f"drol: warning: left out: {file}: line 2: evaluation: expected one of extra, training, got"
    )
    assert printed.err.count("\n") == 1
    assert "verdict" in printed.out


MISTAKES = {
    "page": (["--out", "page.pdf"], "--out is page.pdf; its name must end in .html"),
    "folder": (["--out", "nowhere/page.html"], "cannot write nowhere/page.html: the folder"),
    "at": (["--at", "first"], "--at: invalid choice: 'first'"),
    "baseline": (["--baseline", "fqll"], "unknown group 'fqll'; did you mean fql?"),
}


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line(file, flags, message, capsys):
    assert main(["compare", str(file), *flags]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_extra_evaluations_are_asked_for(tmp_path, capsys):
    path = tmp_path / "results.csv"
    write_results([made_result(evaluation="extra", best_of=number) for number in (1, 4)], path)
    assert main(["compare", str(path)]) == 2
    assert main(["compare", str(path), "--evaluation", "extra"]) == 0
    assert "drol best_of=4" in capsys.readouterr().out
