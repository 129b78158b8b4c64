"""`drol watch`."""

import sys
from pathlib import Path

from drol_runtime import InputError as RuntimeInputError

from drol.cli.flags import Parser, whole_number
from drol.errors import InputError
from drol.reports.live.watcher import MOST_RUNS, READ_AT_ONCE
from drol.runs.follow_records import LARGEST_READ

PORT = 8766

EPILOG = f"""examples:
  drol watch                                    the runs below the folder runs
  drol watch /data/experiments --port 9000
  drol watch sweep.toml                         the runs of a sweep, and how far it is

Open the address that it prints; the page follows runs as they train, and finds new ones. It only reads files below the
folder, at most {READ_AT_ONCE >> 20} MiB at a look ({LARGEST_READ >> 20} MiB of one file), {MOST_RUNS:,} runs.
Programs of this machine reach it; from elsewhere use `ssh -L {PORT}:localhost:{PORT} machine`, or give --host, which
needs the token that is in the address."""


def run(arguments: list[str]) -> int:
    parser = Parser("watch", "Show runs and sweeps on a page while they train.", EPILOG)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("runs"), metavar="FOLDER",
        help="a folder with runs, or the file of a sweep (default: runs)",
    )  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1", help="address to serve at (default: this machine only)")
    parser.add_argument("--port", type=whole_number, default=PORT, help=f"0 for any free port (default: {PORT})")
    parsed = parser.parse(arguments)
    try:
        from drol.reports.live.server import make_server
    except ImportError as error:
        raise InputError(
            f"the live view needs starlette and uvicorn ({error}); install them: pip install 'drol[serve]'"
        ) from error
    try:
        with make_server(parsed.folder, parsed.host, parsed.port) as server:
            if not server.watcher.list_runs(0)["count"]:
                print(f"drol: note: no run is in {parsed.folder} yet; they appear when they begin", file=sys.stderr)
            print(f"watching {parsed.folder} at {server.address} ; Ctrl-C ends it", flush=True)
            server.run()
            print("ended")
    except RuntimeInputError as error:
        raise InputError(str(error)) from error
    return 0
