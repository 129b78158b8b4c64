import json

import pytest

from drol.cli import doctor as command
from drol.cli.main import main
from drol.experiments.doctor import NOTE, OK, PROBLEM, Finding

FINDINGS = [Finding("device", OK, "CPU"), Finding("network", NOTE, "none")]


@pytest.mark.parametrize("problem", [False, True])
def test_it_prints_a_line_for_each_finding_and_ends_with_one_if_there_is_a_problem(monkeypatch, capsys, problem):
    findings = FINDINGS + [Finding("memory", PROBLEM, "1 MB free", "end other programs")] * problem
    monkeypatch.setattr(command, "doctor", lambda mirrors, report: [report(each) or each for each in findings])
    assert main(["doctor"]) == problem
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(findings)
    assert not problem or lines[-1].split("; what to do: ") == [
        "problem memory          1 MB free",
        "end other programs",
    ]


def test_json_has_all_findings_and_mirrors_are_tried(monkeypatch, capsys):
    tried = []
    monkeypatch.setattr(command, "doctor", lambda mirrors, report: tried.extend(mirrors) or FINDINGS)
    monkeypatch.setenv("DROL_MIRRORS", "http://a/x http://b/y")
    assert main(["doctor", "--json"]) == 0
    assert [each["state"] for each in json.loads(capsys.readouterr().out)] == [OK, NOTE]
    assert tried == ["http://a/x", "http://b/y"]
