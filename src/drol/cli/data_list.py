"""`drol data list`."""

import importlib

from drol.cli.flags import Parser
from drol.tasks import SOURCES


def run(arguments: list[str]) -> int:
    Parser("data list", "Every task that drol knows.").parse(arguments)
    for source, module in SOURCES.items():
        for name in importlib.import_module(module).task_names():
            print(f"{source}  {name}")
    return 0
