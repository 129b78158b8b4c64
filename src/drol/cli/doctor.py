"""`drol doctor`."""

import json
import os

from drol.cli.data.download import MIRRORS_VARIABLE
from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.experiments.doctor import PROBLEM, Finding, doctor

EPILOG = """examples:
  drol doctor
  drol doctor --json > doctor.json      for programs, or to send with a question

The exit code is 1 if there is a problem. Extras that are not installed and a missing network are none."""


def run(arguments: list[str]) -> int:
    parser = Parser("doctor", "Look at the installation and the machine: what is wrong and what to do.", EPILOG)
    parser.add_argument("--json", action="store_true", help="all findings as JSON")
    parsed = parser.parse(arguments)
    keep_compiled_programs()
    mirrors = os.environ.get(MIRRORS_VARIABLE, "").split()
    findings = doctor(mirrors, None if parsed.json else print_finding)
    if parsed.json:
        print(json.dumps([each.to_dict() for each in findings], indent=2))
    return 1 if any(each.state == PROBLEM for each in findings) else 0


def print_finding(finding: Finding) -> None:
    advice = f"; what to do: {finding.advice}" if finding.advice else ""
    print(f"{finding.state:8s}{finding.subject:14s}  {finding.words}{advice}", flush=True)
