"""An HTTP server with strict limits, on uvicorn: the policy server and drol's live view run on it.

By default only programs on this machine can reach it. At any other address, every request needs a token.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import h11
import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from drol_runtime.bundle import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(:[0-9]*)?")  # the value of a Host header
REQUEST_SECONDS = 30  # time for a client to send a request and to receive the answer
STOP_SECONDS = 3  # time for open requests to finish after a signal
LARGEST_HEAD = 1 << 16  # bytes of a request before its body
MOST_CONNECTIONS = 512  # at once; further connections get the answer 503


class Connection(H11Protocol):
    """One client. A client that takes longer than `REQUEST_SECONDS` for a request is disconnected."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.deadline = self.loop.call_later(REQUEST_SECONDS, transport.abort)

    def on_response_complete(self) -> None:
        self.deadline.cancel()
        self.deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.deadline.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None:  # the application, if it is still answering this request, must send nothing more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # the invalid bytes follow a request that was already answered
            self.transport.abort()


class Guard:
    """Check each request before the application sees it: its host, its origin, its length and its token.

    Args:
        app: The application.
        admit: Returns the rejection of a request without a valid token, and None for a request with one. If `admit`
            is None, no token is needed.
        headers: Headers of every answer that does not set them itself.
    """

    def __init__(self, app: Any, admit: Callable[[Request], Response | None] | None, headers: Mapping[str, str]):
        self.app, self.admit, self.headers = app, admit, headers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    found.setdefault(name, value)
            await send(message)

        answer = self.check(Request(scope)) or self.app
        await answer(scope, receive, send_with_headers)

    def check(self, request: Request) -> Response | None:
        """Return the answer to a request that is rejected; None if the application may answer it."""
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        if self.admit is None and host_name(host) not in LOOPBACK:  # DNS rebinding
            return failure(421, "this server answers only to the names of this machine, such as localhost")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():  # a page of another site
            return failure(403, "pages of other sites may not send requests to this server")
        if "content-length" in request.headers and "transfer-encoding" in request.headers:  # request smuggling
            return failure(400, "a request has either Content-Length or Transfer-Encoding")
        return self.admit(request) if self.admit is not None else None


S = TypeVar("S", bound="Server")


class Server:
    """Serve an application at an address until `stop`, Ctrl-C or SIGTERM.

    Args:
        app: The ASGI application.
        host: The address to serve at.
        port: The port; any free port if 0.
        admit: As for `Guard`; must be given for addresses that other machines reach.
        headers: As for `Guard`.
    """

    def __init__(
        self,
        app: Any,
        host: str,
        port: int,
        admit: Callable[[Request], Response | None] | None,
        headers: Mapping[str, str] | None = None,
    ):
        if admit is None and host not in LOOPBACK:
            raise InputError(f"{host} can be reached from other machines; give a token ($DROL_TOKEN)")
        self.socket = listen(host, port)
        config = uvicorn.Config(
            Guard(app, admit, headers or {}),
            loop="asyncio",
            http=Connection,
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=REQUEST_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
            h11_max_incomplete_event_size=LARGEST_HEAD,
        )
        self.uvicorn = uvicorn.Server(config)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: Any) -> None:
        self.socket.close()

    @property
    def port(self) -> int:
        return self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        host = self.socket.getsockname()[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until a stop; open requests then have `STOP_SECONDS` to finish. SIGTERM finally ends the process."""
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has stopped
            self.uvicorn.run(sockets=[self.socket])

    def stop(self) -> None:
        """End `run`, from another thread."""
        self.uvicorn.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, without delays: uvicorn sends an answer in two parts.

    With Nagle's algorithm the second part waits 40 ms for the client. Connections inherit the option.
    """
    if not 0 <= port < 2**16:
        raise InputError(f"--port is {port}; it must be from 0 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.create_server(address[:2], family=family, backlog=128)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    except OSError as error:
        raise InputError(f"cannot serve at {host}:{port} ({error.strerror}); choose another --port") from error


def host_name(header: str) -> str:
    """Return the name in a Host header in lower case, without port and brackets; "" if the header is invalid."""
    match = HOST.fullmatch(header)
    return match[1].strip("[]").lower() if match else ""


def failure(status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that is rejected. Close the connection, because the rest is unread."""
    return JSONResponse({"error": words}, status, {"Connection": "close", **(headers or {})})
