"""`drol data download`."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from drol.cli.flags import Parser, number
from drol.data.download import Patience, Report, download
from drol.errors import InputError
from drol.tasks.catalogue import find_dataset_entry

MIRRORS_VARIABLE = "DROL_MIRRORS"
LINE_SECONDS = 10.0  # between lines where there is no terminal

EPILOG = f"""examples:
  drol data download antmaze-large-navigate-v0
  drol data download cube-single-play-singletask-task2-v0      the dataset of a task
  drol data download scene-play-v0 --mirror http://example.org/ogbench

The training and the validation file are put where `drol train` finds them. What was fetched in part is completed by
the same command. Mirrors are asked before the published address; ${MIRRORS_VARIABLE} names more, with spaces between.
The SHA-256 of a file is recorded beside it the first time; a file with another sum is put into quarantine."""


def run(arguments: list[str]) -> int:
    parser = Parser("data download", "Fetch the published files of a dataset.", EPILOG)
    parser.add_argument("name", help="a dataset or a task of `drol data list`")
    parser.add_argument(
        "--mirror",
        action="append",
        default=[],
        metavar="URL",
        help="a folder on the web that has the files; repeatable",
    )
    parser.add_argument(
        "--folder", type=Path, metavar="PATH", help="where to put the files (default: where train looks)"
    )
    parser.add_argument(
        "--timeout",
        type=number,
        default=Patience.connect_seconds,
        metavar="SECONDS",
        help=f"how long a server may take to answer at all (default: {Patience.connect_seconds})",
    )
    parsed = parser.parse(arguments)
    if not parsed.timeout > 0:
        raise InputError(f"--timeout is {parsed.timeout:g}; it must be more than 0 seconds")
    module, entry = find_dataset_entry(parsed.name)
    mirrors = [*parsed.mirror, *os.environ.get(MIRRORS_VARIABLE, "").split()]
    if "download" not in entry.ways or not hasattr(module, "file_addresses"):
        others = [way for way in entry.ways if way != "download"] or ["--dataset"]
        raise InputError(f"nothing is published for {entry.name}; it can be got by {', '.join(others)}")
    folder = parsed.folder or module.download_folder()
    for file_name in entry.files:
        addresses = [f"{mirror.rstrip('/')}/{file_name}" for mirror in mirrors] + module.file_addresses(file_name)
        here = (folder / file_name).is_file()
        with shown_progress(file_name) as report:
            path = download(file_name, folder, addresses, module.check_file, report, patience=Patience(parsed.timeout))
        print(f"{path} ({path.stat().st_size / 1e6:,.1f} MB, {'was here and is whole' if here else 'fetched'})")
    if "embedded" in entry.ways:
        print(
            "`drol train` uses the smaller file that is shipped with drol; "
            f"give it --dataset {folder / entry.files[0]} to use this one"
        )
    return 0


@contextmanager
def shown_progress(file_name: str) -> Iterator[Report]:
    """A bar with rate and time left in a terminal, a line now and then elsewhere."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            line = bar.add_task(file_name, total=None)
            yield lambda done, total: bar.update(line, completed=done, total=total)
        return
    started = last = time.monotonic()
    first: int | None = None

    def report(done: int, total: int | None) -> None:
        nonlocal last, first
        now = time.monotonic()
        first = done if first is None else min(first, done)
        if now - last < LINE_SECONDS:
            return
        last = now
        rate = (done - first) / (now - started)
        left = f", {(total - done) / rate:,.0f} s left" if total and rate else ""
        of = f" of {total / 1e6:,.1f}" if total else ""
        console.print(f"{file_name}: {done / 1e6:,.1f}{of} MB, {rate / 1e6:,.2f} MB/s{left}")

    yield report
