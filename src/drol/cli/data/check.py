"""`drol data check`."""

from pathlib import Path

from drol.cli.data.import_files import add_reading_flags, parse_reading
from drol.cli.flags import Parser
from drol.data.importing.audit import audit_files, audit_stored
from drol.progress import Progress

EPILOG = """examples:
  drol data check flights                 an imported dataset
  drol data check log.csv --end done      files before the import: which would be rejected, and why

The exit code is 1 if files would be rejected."""


def run(arguments: list[str]) -> int:
    parser = Parser("data check", "Describe a dataset or files: content, interpretation and possible faults.", EPILOG)
    parser.add_argument("what", nargs="+", metavar="NAME|FILE", help="the name of a dataset, or files and folders")
    add_reading_flags(parser)
    parsed = parser.parse(arguments)
    with Progress("checking", "MB", scale=1e6) as progress:
        if is_dataset(parsed.what):
            audit = audit_stored(parsed.what[0].removeprefix("files/"), report=progress.show)
        else:
            audit = audit_files([Path(each) for each in parsed.what], report=progress.show, **parse_reading(parsed))
    print(audit)
    return 1 if audit.problems else 0


def is_dataset(names: list[str]) -> bool:
    """Return whether the arguments are the name of a dataset, not files and folders."""
    name = names[0]
    is_path = Path(name).exists() or Path(name).suffix or "*" in name or ("/" in name and not name.startswith("files/"))
    return len(names) == 1 and not is_path
