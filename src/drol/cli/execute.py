"""`drol execute`: the command of each job of a sweep or of `drol paper run`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.cli.train import finish
from drol.planning.run_file import RunFile

EPILOG = """examples:
  drol execute runs/sweeps/jobs/NAME.json                          train the run, then do its extra evaluations
  drol execute runs/sweeps/jobs/NAME.json --import my_module       with an algorithm that my_module.py registers

The same command resumes an interrupted run. The exit codes are those of `drol train`. The file cannot import modules;
only --import does."""


def run(arguments: list[str]) -> int:
    parser = Parser("execute", "Execute a run from the file that a sweep or `drol paper run` wrote.", EPILOG)
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the job file of a run: a JSON file in the folder `jobs` beside the runs",
    )
    planned = RunFile.read(parser.parse(arguments).file)
    keep_compiled_programs()
    return finish(planned.config, planned.folder, planned.execute)
