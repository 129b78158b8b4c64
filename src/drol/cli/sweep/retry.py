"""`drol sweep retry`."""

from drol.cli.flags import Parser
from drol.cli.sweep.run_sweep import do


def run(arguments: list[str]) -> int:
    words = "Try runs of a sweep again that failed, and do the rest, as `drol sweep run` does."
    return do(arguments, Parser("sweep retry", words), again=True)
