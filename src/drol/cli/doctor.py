"""`drol doctor`."""

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.installation import doctor

EPILOG = """examples:
  drol doctor
  drol doctor > doctor.txt      a file to attach to a question

The exit code is 1 if there is a problem."""


def run(arguments: list[str]) -> int:
    Parser("doctor", "Check the installation and the machine, and print advice for each problem.", EPILOG).parse(
        arguments
    )
    keep_compiled_programs()
    problems = 0
    for finding in doctor():
        state, advice = ("problem", f"; what to do: {finding.advice}") if finding.advice else ("ok", "")
        print(f"{state:8s}{finding.subject:10s}  {finding.words}{advice}", flush=True)
        problems += bool(finding.advice)
    return 1 if problems else 0
