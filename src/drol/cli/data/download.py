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

The training and the validation file are saved where `drol train` finds them. After an interruption the same command
resumes. Mirrors are tried before the published address; ${MIRRORS_VARIABLE} may list more, separated by spaces.
The SHA-256 of a file must be the published one if that is known (D4RL except relocate). Otherwise the first download
records it beside the file, and later downloads must match it."""


def run(arguments: list[str]) -> int:
    parser = Parser("data download", "Fetch the published files of a dataset.", EPILOG)
    parser.add_argument("name", help="a dataset or task of `drol data list`")
    parser.add_argument(
        "--mirror",
        action="append",
        default=[],
        metavar="URL",
        help="URL of a folder with the files; repeatable",
    )
    parser.add_argument(
        "--folder", type=Path, metavar="PATH", help="where to save the files (default: where `drol train` finds them)"
    )
    parser.add_argument(
        "--timeout",
        type=number,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"give up after this long without an answer (default: {TIMEOUT:g})",
    )
    parsed = parser.parse(arguments)
    source, entry = find_dataset_entry(parsed.name)
    mirrors = [*parsed.mirror, *os.environ.get(MIRRORS_VARIABLE, "").split()]
    if "download" not in entry.ways:
        raise InputError(f"no files are published for {entry.name}; get it by {' or '.join(entry.ways) or '--dataset'}")
    folder = parsed.folder or source.download_folder()
    for file_name in entry.files:
        addresses = [f"{mirror.rstrip('/')}/{file_name}" for mirror in mirrors] + source.file_addresses(file_name)
        here = (folder / file_name).is_file()
        with Progress("downloading", "MB", scale=1e6) as progress:
            sha256 = source.file_sha256(file_name)
            path = download(file_name, folder, addresses, source.check_file, progress.show, sha256, parsed.timeout)
        print(f"{path} ({bytes_in_words(path.stat().st_size)}, {'already here, complete' if here else 'downloaded'})")
    if "embedded" in entry.ways:
        print(
            "`drol train` uses the smaller file that is shipped with drol; "
            f"add --dataset {folder / entry.files[0]} to use this one"
        )
    return 0
