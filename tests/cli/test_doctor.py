import pytest

from drol.cli import doctor as command
from drol.cli.main import main
from drol.installation import Finding


@pytest.mark.parametrize("problem", [False, True])
def test_it_prints_a_line_for_each_finding_and_ends_with_one_if_there_is_a_problem(monkeypatch, capsys, problem):
    findings = [Finding("device", "CPU")] + [Finding("runs", "/x cannot be written", "work elsewhere")] * problem
    monkeypatch.setattr(command, "doctor", lambda: iter(findings))
    assert main(["doctor"]) == problem
    expected = ["ok      device      CPU", "problem runs        /x cannot be written; what to do: work elsewhere"]
    assert capsys.readouterr().out.splitlines() == expected[: len(findings)]
