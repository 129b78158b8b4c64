"""`drol sweep retry`."""

from drol.cli.flags import Parser
from drol.cli.sweep.run_sweep import do


def run(arguments: list[str]) -> int:
    words = "Retry the failed runs of a sweep, then execute the missing ones, as `drol sweep run` does."
    return do(arguments, Parser("sweep retry", words), again=True)
