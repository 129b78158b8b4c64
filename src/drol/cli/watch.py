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
  drol watch                                    the runs below the folder "runs"
  drol watch /data/experiments --port 9000
  drol watch sweep.toml                         the runs and the progress of a sweep

Open the printed address. The page follows runs as they train and finds new runs. The command only reads files below
the folder: at most {MOST_RUNS:,} runs, {READ_AT_ONCE >> 20} MiB per update ({LARGEST_READ >> 20} MiB of one file).
The page is open to this machine only; from another machine use `ssh -L {PORT}:localhost:{PORT} machine`, or --host,
which requires the token in the printed address."""


def run(arguments: list[str]) -> int:
    parser = Parser("watch", "Show runs and sweeps in a browser while they train.", EPILOG)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("runs"), metavar="FOLDER",
        help="a folder with runs, or the file of a sweep (default: runs)",
    )  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
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
                print(
                    f"drol: note: {parsed.folder} has no runs yet; the page shows them as they start", file=sys.stderr
                )
            print(f"watching {parsed.folder} at {server.address} (stop with Ctrl-C)", flush=True)
            server.run()
            print("stopped")
    except RuntimeInputError as error:
        raise InputError(str(error)) from error
    return 0
