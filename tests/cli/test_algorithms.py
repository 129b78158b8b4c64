"""`drol algorithms`: every algorithm, and one with all that is known of it."""

import dataclasses

import pytest

from drol.algorithms import ALGORITHMS, REGISTERED, known_algorithms, register_algorithm
from drol.algorithms.bc import BC
from drol.cli.main import main


def show(name, capsys):
    assert main(["algorithms", "show", name]) == 0
    return capsys.readouterr().out


def lines_of(output, family):
    return [line.split() for line in output.splitlines() if f" {family} " in line]


def test_the_list_has_a_line_for_each(capsys):
    assert main(["algorithms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(known_algorithms())
    assert all(len(line.split()) > 4 for line in lines)
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1  # descriptions begin in one column


@pytest.mark.parametrize("name", ALGORITHMS)
def test_show_has_the_equations_and_every_hyperparameter(name, capsys):
    output = show(name, capsys)
    assert "    L_" in output
    for field in dataclasses.fields(ALGORITHMS[name]):
        assert f"\n  {field.name} " in output
        assert field.metadata["description"].split()[0] in output
    assert all(len(line) <= 120 and line == line.rstrip() for line in output.splitlines())


def test_defaults_and_what_is_allowed(capsys):
    output = show("drol", capsys)
    assert "num_candidates      16         K, candidates drawn for each state (from 1 to 65,536)" in output
    assert "discount            0.99       gamma, discount of the Bellman target (from 0 to 1)" in output
    assert "(one of mean, min)" in output
    assert "normalise_q         yes " in output
    assert "hidden_sizes        512x4 " in output


def test_presets_that_differ_share_a_cell(capsys):
    output = show("drol", capsys)
    assert lines_of(output, "antmaze-giant")[0][2:4] == ["0.03", "16/1/16/1"]
    assert lines_of(output, "antmaze-large-play")[0][2:4] == ["0.03/0.03/0.1/0.03", "16"]
    assert "a/b/c/d: under the presets paper, paper-tuned, released, released-tuned" in output
    assert "pen-human: num_candidates is 4 as printed" in output


def test_unknown_and_doubtful_values_are_shown_as_such(capsys):
    output = show("fawac", capsys)
    assert lines_of(output, "antsoccer-arena")[0][2:4] == ["unknown", "0.995"]
    assert lines_of(output, "pen-human")[0][2:4] == ["0.03", "(?)"]
    assert "antsoccer-arena: unknown, so at its default unless given: alpha 3.0" in output
    assert lines_of(show("sorl", capsys), "door-human")[0][2:5] == ["unknown"] * 3


def test_the_equation_has_the_printed_numbers_of_the_paper(capsys):
    output = show("drol-equation", capsys)
    assert lines_of(output, "cube-single")[0][2:4] == ["10", "16"]
    assert lines_of(output, "antmaze-giant")[0][2:5] == ["0.03", "16/1/16/1", "0.995"]
    assert "multiplies raw Q, as the paper prints it" in output


def test_a_method_that_the_paper_does_not_have_says_so(capsys):
    words = "none: driftql is not in the paper's tables; its default hyperparameters are used"
    assert show("driftql", capsys).endswith(f"  {words}\n  `--preset laptop` uses small networks for it\n")


class Mine(BC):
    """An algorithm of somebody else."""

    presets = {}  # noqa: RUF012


def test_an_algorithm_of_somebody_else_is_listed_and_shown(capsys, monkeypatch):
    monkeypatch.delitem(REGISTERED, "mine", raising=False)
    register_algorithm("mine", Mine)
    try:
        assert main(["algorithms"]) == 0
        assert capsys.readouterr().out.splitlines()[-1].split(maxsplit=1) == ["mine", "An algorithm of somebody else."]
        output = show("mine", capsys)
    finally:
        del REGISTERED["mine"]
    assert output.startswith("mine: An algorithm of somebody else.\n")
    assert output.endswith("none: mine is not in the paper's tables; its default hyperparameters are used\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "fqll"], "unknown algorithm 'fqll'; did you mean fql?"),
        (["shw"], "unknown command 'shw' of `drol algorithms`; did you mean show?"),
        (["list"], "unknown command 'list' of `drol algorithms`; the only command is show"),
        (["fql"], "did you mean `drol algorithms show fql`?"),
        (["show"], "name"),
        (["--jsn"], "unknown argument '--jsn'"),
    ],
)
def test_errors_are_one_line_that_helps(arguments, words, capsys):
    assert main(["algorithms", *arguments]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert words in answer.err
    assert len(answer.err.splitlines()) == 1
