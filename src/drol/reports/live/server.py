"""The HTTP server of the live view: it lists runs and sends their pages and the files that these pages show.

It only reads. Programs of this machine reach it, unless it serves at another address; then every request needs the
token of the printed address.
"""

import functools
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

from drol_runtime.http_server import LOOPBACK, Server, failure
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from drol.reports.live.watcher import Watcher
from drol.sweeps.sweep_file import read_sweep

LARGEST_FILE = 1 << 26  # bytes of a file that is sent
PART_BYTES = 1 << 18  # of a file that are in memory at once
COOKIE = "drol_watch"
ASSETS = {
    "/": ("drol.reports.live", "watch.html", "text/html"),
    "/watch.js": ("drol.reports.live", "watch.js", "text/javascript"),
    "/watch.css": ("drol.reports.live", "watch.css", "text/css"),
    "/charts.js": ("drol.reports.html", "charts.js", "text/javascript"),
    "/page.css": ("drol.reports.html", "page.css", "text/css"),
}
TYPES = {".html": "text/html", ".gif": "image/gif"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# Another person may have written a report. It may draw itself, and reaches nothing else, not even this server.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'"
)


class WatchServer(Server):
    """Serve the runs below a folder until it is stopped."""

    def __init__(self, watcher: Watcher, host: str = LOOPBACK[0], port: int = 0):
        self.watcher = watcher
        self.token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        routes = [Route(path, functools.partial(send_asset, *asset)) for path, asset in ASSETS.items()]
        routes += [
            Route("/runs.json", self.list_runs),
            Route("/details.json", self.details),
            Route("/file/{run}/{folder}/{name}", self.file),
        ]
        handlers: dict[Any, Any] = {
            HTTPException: lambda _, error: failure(error.status_code, error.detail, error.headers)
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        super().__init__(app, host, port, self.admit if self.token else None, HEADERS)

    @property
    def address(self) -> str:
        """The address to open, with the token where there is one."""
        return f"{super().address}/" + (f"?token={self.token}" if self.token else "")

    def admit(self, request: Request) -> Response | None:
        """Return the answer to a request without the token; an address with the token sets it as a cookie."""
        token = (self.token or "").encode()
        if hmac.compare_digest(request.query_params.get("token", "").encode(errors="replace"), token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token.decode(), httponly=True, samesite="strict")
            return answer
        if hmac.compare_digest(request.cookies.get(COOKIE, "").encode(errors="replace"), token):
            return None
        return failure(401, "open the address that `drol watch` printed, with its token")

    def list_runs(self, request: Request) -> Response:
        return send_json(self.watcher.list_runs(since_of(request)))

    def details(self, request: Request) -> Response:
        return send_json(self.watcher.details(request.query_params.get("runs", "").split(","), since_of(request)))

    def file(self, request: Request) -> Response:
        """Send the report or a video of a run."""
        run, folder, name = (request.path_params[each] for each in ("run", "folder", "name"))
        path = self.watcher.file(run, "" if folder == "page" else folder, name)
        opened = open_regular(path) if path is not None and path.suffix in TYPES else None
        if path is None or opened is None:
            raise HTTPException(404, "a run here has no such file")
        policy = REPORT_POLICY if path.suffix == ".html" else "default-src 'none'"
        return StreamingResponse(parts(opened), 200, {"Content-Security-Policy": policy}, TYPES[path.suffix])


def send_asset(package: str, name: str, kind: str, _: Request) -> Response:
    return Response(read_asset(package, name), media_type=kind)


@functools.cache
def read_asset(package: str, name: str) -> bytes:
    """Return a file of this package."""
    return resources.files(package).joinpath(name).read_bytes()


def send_json(content: Any) -> Response:
    """Return an answer in JSON; names that are not valid UTF-8 are escaped."""
    return Response(json.dumps(content, allow_nan=False, separators=(",", ":")), media_type="application/json")


def since_of(request: Request) -> int:
    """Return the version that the page has; 0 if the request does not say."""
    given = request.query_params.get("since", "")
    return int(given) if given.isdecimal() and len(given) < 16 else 0


def open_regular(path: Path) -> BinaryIO | None:
    """Open a regular file of at most `LARGEST_FILE` bytes; None for a link, a pipe or a file that vanished."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def parts(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file in parts, and close it."""
    with file:
        while part := file.read(PART_BYTES):
            yield part


def make_server(path: Path | str, host: str = LOOPBACK[0], port: int = 0) -> WatchServer:
    """Return a server for the runs below a folder, or for the runs of a sweep.

    Args:
        path: A folder, or the file of a sweep (.toml), whose root is watched then.
        host: The address to listen on; for other machines than this one, `address` has a token.
        port: The port; any free port if 0.
    """
    path = Path(path)
    if path.suffix == ".toml" and not path.is_dir():
        sweep = read_sweep(path)
        return WatchServer(Watcher(sweep.root, sweep), host, port)
    return WatchServer(Watcher(path), host, port)
