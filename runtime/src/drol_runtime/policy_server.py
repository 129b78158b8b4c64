"""The policy server: an HTTP application that answers observations with actions, one request at a time."""

from __future__ import annotations

import hmac
import json
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from drol_runtime.bundle import InputError
from drol_runtime.http_server import Server, failure
from drol_runtime.policy import Policy

LARGEST_BODY = 1 << 20  # bytes
LARGEST_BATCH = 256  # observations in one request
ENTRIES = ("observation", "seed", "latent")
DESCRIBED = (
    "algorithm", "task", "step", "seed", "control_rate", "observation", "action", "dataset_fingerprint", "made_by",
)  # fmt: skip


class PolicyServer(Server):
    """Serve one policy until it is stopped.

    Attributes:
        requests: The number of requests that were answered with actions.
        observations: The number of observations in these requests.
    """

    def __init__(self, policy: Policy, host: str = "127.0.0.1", port: int = 8765, token: str | None = None):
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise InputError("the token must consist of printable ASCII characters without spaces; choose another")
        self.policy, self.token, self.requests, self.observations = policy, token, 0, 0
        routes = [
            Route("/", self.describe),
            Route("/status", self.status),
            Route("/act", self.act, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {
            InputError: lambda _, error: failure(400, str(error)),
            HTTPException: lambda _, error: failure(error.status_code, error.detail, error.headers),
            ClientDisconnect: lambda _, __: Response(status_code=400),  # not sent: the client is gone
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        super().__init__(app, host, port, self.admit if token else None)

    def admit(self, request: Request) -> Response | None:
        """Return the rejection of a request without the right token; None if the token is right."""
        given = request.headers.get("authorization", "")  # decoded as latin-1 by starlette
        if hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.token}".encode()):
            return None
        return failure(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")

    async def describe(self, _: Request) -> Response:
        return JSONResponse({name: self.policy.description.get(name) for name in DESCRIBED})

    async def status(self, _: Request) -> Response:
        counts = {"requests": self.requests, "observations": self.observations, "outside": self.policy.outside}
        return JSONResponse(counts)

    async def act(self, request: Request) -> Response:
        asked = decode(await read_body(request))
        for name in asked:
            if name not in ENTRIES:
                raise InputError(f"unknown entry {name[:40]!r}; the entries are {', '.join(ENTRIES)}")
        if "observation" not in asked:
            raise InputError("the request has no observation")
        values = self.policy.check_observation(asked["observation"])
        rows = 1 if values.ndim == 1 else len(values)
        if rows > LARGEST_BATCH:
            raise InputError(f"the request has {rows} observations; send at most {LARGEST_BATCH} at once")
        action = self.policy.act(values, asked.get("seed"), asked.get("latent"))
        self.requests += 1
        self.observations += rows
        return JSONResponse({"action": action.tolist()})


async def read_body(request: Request) -> bytes:
    """Return the body of a request; stop reading at `LARGEST_BODY`."""
    body = bytearray()
    size = int(request.headers.get("content-length", "0"))
    if size <= LARGEST_BODY:
        async for part in request.stream():
            body += part
            size = max(size, len(body))
            if size > LARGEST_BODY:
                break
    if size > LARGEST_BODY:
        raise HTTPException(413, f"the body is larger than {LARGEST_BODY:,} bytes; send fewer observations at once")
    return bytes(body)


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the body is not valid JSON") from None
    if not isinstance(found, dict):
        raise InputError("the body must be a JSON object")
    return found
