"""A server on this machine that truncates, corrupts, stalls and lies, as a test wants it."""

import hashlib
import http.server
import io
import threading

import numpy as np

NAME = "data.npz"


def make_file(seed: int = 0) -> bytes:
    """An npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, observations=np.random.default_rng(seed).normal(size=(200, 3)), actions=np.zeros((200, 2)))
    return buffer.getvalue()


WHOLE = make_file()


class Server:
    """A server whose behaviour is a function of the request; it notes all requests."""

    def __init__(self, answer):
        self.requests: list[str | None] = []  # the Range of each
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append(self.headers.get("Range"))
                self.close_connection = True
                answer(self, len(outer.requests))

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a client that hangs up is what some tests want
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/files/{NAME}"

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def send(handler, content: bytes, length: int | None = None, status: int = 200, **headers: str) -> None:
    """Answer with some content, under a length that may be wrong."""
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def requested_start(handler) -> int:
    """The first byte that is requested."""
    return int((handler.headers.get("Range") or "bytes=0-")[6:-1])


def version(content: bytes) -> str:
    """The ETag of some content."""
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def good(handler, _number, content=WHOLE) -> None:
    """A server that knows ranges and versions."""
    start, tag = requested_start(handler), version(content)
    if handler.headers.get("If-Range", tag) != tag:
        start = 0
    if start >= len(content):
        send(handler, b"", status=416, Content_Range=f"bytes */{len(content)}")
    elif start:
        whole = f"bytes {start}-{len(content) - 1}/{len(content)}"
        send(handler, content[start:], status=206, Content_Range=whole, ETag=tag)
    else:
        send(handler, content, ETag=tag)
