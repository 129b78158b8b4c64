"""`drol data download`."""

import os
from pathlib import Path

from drol.cli.flags import Parser, number
from drol.data.download import TIMEOUT, download
from drol.errors import InputError
from drol.machine import bytes_in_words
from drol.progress import Progress
from drol.tasks.catalogue import find_dataset_entry

MIRRORS_VARIABLE = "DROL_MIRRORS"

EPILOG = f"""examples:
  drol data download antmaze-large-navigate-v0
  drol data download cube-single-play-singletask-task2-v0      the dataset of a task
  drol data download scene-play-v0 --mirror http://example.org/ogbench

The training and the validation file are put where `drol train` finds them. After an interruption the same command
resumes. Mirrors are tried before the published address; ${MIRRORS_VARIABLE} names more, with spaces between.
The SHA-256 of a file must be the published one where that is known (D4RL, but for relocate); it is recorded beside the
file the first time, and a file with another sum is rejected."""


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
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"how long a server may be silent (default: {TIMEOUT:g})",
    )
    parsed = parser.parse(arguments)
    source, entry = find_dataset_entry(parsed.name)
    mirrors = [*parsed.mirror, *os.environ.get(MIRRORS_VARIABLE, "").split()]
    if "download" not in entry.ways:
        raise InputError(f"nothing is published for {entry.name}; get it by {' or '.join(entry.ways) or '--dataset'}")
    folder = parsed.folder or source.download_folder()
    for file_name in entry.files:
        addresses = [f"{mirror.rstrip('/')}/{file_name}" for mirror in mirrors] + source.file_addresses(file_name)
        here = (folder / file_name).is_file()
        with Progress("downloading", "MB", scale=1e6) as progress:
            sha256 = source.file_sha256(file_name)
            path = download(file_name, folder, addresses, source.check_file, progress.show, sha256, parsed.timeout)
        print(f"{path} ({bytes_in_words(path.stat().st_size)}, {'was here and is whole' if here else 'fetched'})")
    if "embedded" in entry.ways:
        print(
            "`drol train` uses the smaller file that is shipped with drol; "
            f"give it --dataset {folder / entry.files[0]} to use this one"
        )
    return 0
