"""A server that only reads: the list of runs, their pages, and the files of theirs that pages show.

Only programs of this machine reach it unless another address is given, and then every request must carry the token.
"""

import contextlib
import functools
import hmac
import json
import secrets
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from drol.errors import InputError
from drol.pages.watch.following import read_part, regular
from drol.pages.watch.reports import ReportMaker
from drol.pages.watch.watcher import Watcher
from drol.sweeps.file import read_sweep

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATIENCE_SECONDS = 30  # for a client that does not say all it announced
LARGEST_FILE = 1 << 26  # bytes of a file that is sent
PORT = 8766
COOKIE = "drol_watch"
ASSETS = {
    "/": ("drol.pages.watch", "watch.html", "text/html; charset=utf-8"),
    "/watch.js": ("drol.pages.watch", "watch.js", "text/javascript; charset=utf-8"),
    "/watch.css": ("drol.pages.watch", "watch.css", "text/css; charset=utf-8"),
    "/charts.js": ("drol.experiments.report", "charts.js", "text/javascript; charset=utf-8"),
    "/page.css": ("drol.experiments.report", "page.css", "text/css; charset=utf-8"),
}
KINDS = {".html": "text/html; charset=utf-8", ".png": "image/png", ".gif": "image/gif"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A report is a file that somebody may have been sent: it may draw itself, and reach nothing, not even this server.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Handler(BaseHTTPRequestHandler):
    """One client."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1
    server: "WatchServer"

    def do_GET(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a browser that has left
            if self.admitted():
                self.answer()

    def do_HEAD(self) -> None:
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what is no request that is known here: whatever would write, and what makes no sense."""
        self.close_connection = True  # what else was sent is not read
        if code == 501:  # the method
            self.reply(405, b"this server only reads\n", "text/plain", {"Allow": "GET, HEAD"})
        else:
            self.reply(code, b"this request makes no sense\n", "text/plain")

    def admitted(self) -> bool:
        """Return whether the request may be answered; answer it here if not."""
        host = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
        if not self.server.token:
            if host not in LOOPBACK:  # a page of somebody else may not reach it by a name of its own
                self.close_connection = True
                self.reply(421, b"this is not the host that is served here\n", "text/plain")
            return host in LOOPBACK
        asked = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        if same(asked, self.server.token):
            cookie = f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            self.reply(303, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})
            return False
        cookies: SimpleCookie = SimpleCookie()
        with contextlib.suppress(CookieError):
            cookies.load(self.headers.get("Cookie", ""))
        if COOKIE in cookies and same(cookies[COOKIE].value, self.server.token):
            return True
        self.close_connection = True
        self.reply(401, b"open the address that `drol watch` printed, with its token\n", "text/plain")
        return False

    def answer(self) -> None:
        address = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(address.query).items()}
        since = int(given["since"]) if given.get("since", "").isdecimal() and len(given["since"]) < 16 else 0
        parts = address.path.split("/")
        if address.path in ASSETS:
            package, name, kind = ASSETS[address.path]
            self.reply(200, asset(package, name), kind)
        elif address.path == "/runs.json":
            self.reply_json(self.server.watcher.list_runs(since))
        elif address.path == "/details.json":
            self.reply_json(self.server.watcher.details(given.get("runs", "").split(","), since))
        elif len(parts) == 5 and parts[1] == "file":
            folder = "" if parts[3] == "page" else parts[3]
            self.reply_file(self.server.watcher.file(parts[2], folder, unquote(parts[4])))
        else:
            self.reply(404, b"there is nothing here\n", "text/plain")

    def reply_file(self, path: Path | None) -> None:
        """Send a file of a run, in parts, so that a large one is never in memory as a whole."""
        status = regular(path) if path is not None else None
        if path is None or status is None or status.st_size > LARGEST_FILE or path.suffix not in KINDS:
            self.reply(404, b"there is no such file of a run here\n", "text/plain")
            return
        policy = REPORT_POLICY if path.suffix == ".html" else "default-src 'none'"
        self.begin(200, status.st_size, KINDS[path.suffix], {"Content-Security-Policy": policy})
        sent = 0
        while self.command == "GET" and sent < status.st_size:
            part = read_part(path, sent, min(1 << 18, status.st_size - sent))
            if not part:  # it was cut meanwhile
                self.close_connection = True
                return
            self.wfile.write(part)
            sent += len(part)
        self.wfile.flush()

    def reply_json(self, content: Any) -> None:
        self.reply(200, json.dumps(content, allow_nan=False, separators=(",", ":")).encode(), "application/json")

    def reply(self, code: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.begin(code, len(body), kind, headers or {})
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def begin(self, code: int, length: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(code)
        sent = {"Content-Type": kind, "Content-Length": str(length), "Content-Security-Policy": POLICY, **HEADERS}
        for name, value in (sent | headers).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def version_string(self) -> str:
        return "drol"

    def log_message(self, *_: Any) -> None:
        """Print nothing for each request."""


class WatchServer(ThreadingHTTPServer):
    """Serves the runs below a folder until it is shut down."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, watcher: Watcher, host: str = LOOPBACK[0], port: int = PORT, reports: bool = False):
        self.watcher = watcher
        self.reports: ReportMaker | None = None
        self.token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        if not 0 <= port < 2**16:
            raise InputError(f"--port is {port}; it must be from 0 to 65535")
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise InputError(f"cannot serve at {host}:{port} ({error.strerror}); choose another --port") from error
        self.reports = ReportMaker(watcher) if reports else None

    @property
    def address(self) -> str:
        """The address to open, with the token where there is one."""
        host, port = self.server_address[:2]
        return f"http://{host}:{port}/" + (f"?token={self.token}" if self.token else "")

    def server_close(self) -> None:
        super().server_close()
        if self.reports:
            self.reports.close()

    def handle_error(self, *_: Any) -> None:
        """Say nothing of a client that went away."""


def same(given: str, token: str) -> bool:
    """Return whether a token is right, in a time that does not tell how much of it is."""
    return hmac.compare_digest(given.encode(), token.encode())


@functools.cache
def asset(package: str, name: str) -> bytes:
    """Return a file of ours."""
    return resources.files(package).joinpath(name).read_bytes()


def make_server(path: Path | str, host: str = LOOPBACK[0], port: int = PORT, reports: bool = False) -> WatchServer:
    """Return a server for the runs below a folder, or for those of a sweep.

    Args:
        path: A folder, or the file of a sweep (.toml), whose root is watched then.
        host: The address to serve at; one that other machines reach has a token, which is in `address`.
        port: The port; any that is free if 0.
        reports: Whether the report of a run that somebody looks at is made again after each of its evaluations.
    """
    path = Path(path)
    if path.suffix == ".toml" and not path.is_dir():
        sweep = read_sweep(path)
        return WatchServer(Watcher(sweep.root, sweep), host, port, reports)
    return WatchServer(Watcher(path), host, port, reports)
