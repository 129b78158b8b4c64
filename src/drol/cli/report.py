"""`drol report`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import prepare_jax
from drol.errors import InputError
from drol.runs.directory import RunDirectory


def run(arguments: list[str]) -> int:
    parser = Parser("report", "Draw the figures of a run and write its report.html.")
    parser.add_argument("run", type=Path, help="a run folder")
    parsed = parser.parse(arguments)
    print(f"report: {make_report(RunDirectory(parsed.run))}")
    return 0


def make_report(directory: RunDirectory) -> Path:
    directory.read_config()  # a folder that is not a run is refused before anything is drawn
    prepare_jax()
    try:
        from drol.experiments.report.page import write_report
    except ModuleNotFoundError as error:
        raise InputError(f"reports need {error.name}; install it with: pip install 'drol[report]'") from error
    return write_report(directory)
