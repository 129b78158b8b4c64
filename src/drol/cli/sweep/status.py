"""`drol sweep status`."""

import importlib.util
from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol.sweeps.status import sweep_status, text_status
from drol.sweeps.sweep_file import read_sweep

EPILOG = """examples:
  drol sweep status sweep.toml
  drol sweep status sweep.toml --page sweep.html     the table, learning curves, the effect of each hyperparameter"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "sweep status", "Show the progress of a sweep: finished, running and failed runs, best choice so far.", EPILOG
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page (.html)")
    parsed = parser.parse(arguments)
    if parsed.page:
        check_page(parsed.page)
    status = sweep_status(read_sweep(parsed.file))
    print(text_status(status))
    if parsed.page:
        from drol.reports.sweep_page import (
            write_sweep_page,
        )  # imported here, because the status alone works without matplotlib

        print(f"wrote {write_sweep_page(status, parsed.page)}")
    return 1 if status.those("failed") else 0


def check_page(path: Path) -> None:
    """Reject a page that cannot be written, before any file is read."""
    if path.suffix != ".html":
        raise InputError(f"--page is {path}; its name must end in .html")
    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.absolute().parent} does not exist")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("pages need matplotlib; install it with: pip install 'drol[report]'")
