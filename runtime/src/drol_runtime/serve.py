"""Serve a policy over HTTP: requests that arrive together are answered by one pass through the networks.

    POST /act   {"observation": [...]}                      -> {"action": [...]}
                {"observation": [[...], ...], "seed": 0}    -> {"action": [[...], ...]}; also "latent"
    GET  /      what the policy sees and does
    GET  /status  requests, rows, the largest batch, refusals

Only addresses of this machine reach it unless another one is given, and then every request must carry the token.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import queue
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from drol_runtime.bundle import InputError
from drol_runtime.policy import Policy, check_finite, load

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST_BODY = 1 << 20  # bytes
LARGEST_BATCH = 256  # rows that go through the networks together
WAITING = 128  # requests that may wait; further ones are told to come back
PATIENCE_SECONDS = 30  # for a client that does not say all it announced, and for an answer
TOKEN_VARIABLE = "DROL_TOKEN"


class Busy(Exception):
    """So many requests wait that another one would only wait longer."""


class Request:
    """Observations that wait for their actions."""

    def __init__(self, observation: Any, latent: Any):
        self.observation, self.latent = observation, latent
        self.action: Any = None
        self.error: Exception | None = None
        self.done = threading.Event()


class Batcher:
    """Answers requests: what waits when the networks are free goes through them together."""

    def __init__(self, policy: Policy):
        self.policy = policy
        self.waiting: queue.Queue[Request] = queue.Queue(WAITING)
        self.requests = self.rows = self.batches = self.largest = self.refused = 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def act(self, observation: Any, seed: int | None, latent: Any) -> Any:
        """Return the action for an observation, or for each of a batch."""
        values = self.policy.check_observation(observation)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.atleast_2d(values).astype(np.float32)
            check_finite(rows, "observation")  # here, where it is this client's affair alone
        if len(rows) > LARGEST_BATCH:
            raise InputError(f"{len(rows)} observations at once; at most {LARGEST_BATCH} are answered together")
        request = Request(rows, self.policy.latents(len(rows), seed, latent))
        try:
            self.waiting.put_nowait(request)
        except queue.Full:
            self.refused += 1
            raise Busy from None
        if not request.done.wait(PATIENCE_SECONDS):
            raise Busy
        if request.error is not None:
            raise request.error
        return request.action[0] if values.ndim == 1 else request.action

    def work(self) -> None:
        held = None
        while True:
            first, held = held or self.waiting.get(), None
            batch, rows = [first], len(first.observation)
            while rows < LARGEST_BATCH:
                try:
                    request = self.waiting.get_nowait()
                except queue.Empty:
                    break
                if rows + len(request.observation) > LARGEST_BATCH:
                    held = request
                    break
                batch.append(request)
                rows += len(request.observation)
            self.answer(batch, rows)

    def answer(self, batch: list[Request], rows: int) -> None:
        try:
            actions = self.act_together(batch, rows)
        except Exception as error:  # whatever happens to one request, the others are answered
            if len(batch) > 1:
                for request in batch:
                    self.answer([request], len(request.observation))
            else:
                batch[0].error = error
                batch[0].done.set()
            return
        self.requests += len(batch)
        self.rows += rows
        self.batches += 1
        self.largest = max(self.largest, rows)
        place = 0
        for request in batch:
            request.action = actions[place : place + len(request.observation)]
            place += len(request.observation)
            request.done.set()

    def act_together(self, batch: list[Request], rows: int) -> Any:
        """Return the actions for all observations of a batch; rows that fill it up are not counted as outside."""
        size = 1 << (rows - 1).bit_length()  # few sizes, so that buffers are used again
        observation = np.empty((size, self.policy.observation_size), np.float32)
        latent = np.zeros((size, self.policy.best_of, self.policy.action_size), np.float32)
        observation[rows:] = self.policy.low  # in the range of the data
        observation[:rows] = np.concatenate([request.observation for request in batch])
        latent[:rows] = np.concatenate([request.latent for request in batch])
        return self.policy.act(observation, latent=latent)

    def status(self) -> dict[str, int]:
        return {
            "requests": self.requests, "observations": self.rows, "batches": self.batches,
            "largest_batch": self.largest, "refused": self.refused, "outside": self.policy.outside,
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """One client."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_SECONDS
    disable_nagle_algorithm = True  # or an answer waits 40 ms for the client's acknowledgement of its first part
    wbufsize = -1
    server: Server

    def do_GET(self) -> None:
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a body that is not read must not become the next request
        if not self.admitted():
            return
        if self.path == "/":
            names = ("algorithm", "task", "step", "seed", "observation", "action", "dataset_fingerprint", "made_by")
            self.reply(200, {name: self.server.batcher.policy.description.get(name) for name in names})
        elif self.path == "/status":
            self.reply(200, self.server.batcher.status())
        else:
            self.reply(404, {"error": "there are / and /status to GET, and /act to POST"})

    def do_POST(self) -> None:
        if not self.admitted():
            return
        if self.path != "/act":
            self.refuse(404, "there is only /act to POST")
            return
        try:
            asked = self.read_body()
            for name in asked:
                if name not in ("observation", "seed", "latent"):
                    raise InputError(f"unknown entry {name[:40]!r}; there are observation, seed and latent")
            action = self.server.batcher.act(asked["observation"], asked.get("seed"), asked.get("latent"))
            self.reply(200, {"action": action.tolist()})
        except Busy:
            self.reply(503, {"error": "too many requests wait; come back"}, {"Retry-After": "1"})
        except KeyError:
            self.reply(400, {"error": "the request has no observation"})
        except InputError as error:
            self.reply(400, {"error": str(error)})

    def admitted(self) -> bool:
        """Return whether the request may be answered; answer it here if not."""
        host = self.headers.get("Host", "").rsplit(":", 1)[0].strip("[]")
        if not self.server.token and host not in LOOPBACK:  # a page in a browser may not reach it by a name of its own
            self.refuse(421, "this is not the host that it serves")
        elif self.server.token and not hmac.compare_digest(
            self.headers.get("Authorization", "").encode(), f"Bearer {self.server.token}".encode()
        ):
            self.refuse(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")
        else:
            return True
        return False

    def read_body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        plain = re.fullmatch("[0-9]{1,9}", length) and "Transfer-Encoding" not in self.headers
        if not plain or int(length) > LARGEST_BODY:
            self.close_connection = True
            raise InputError(f"the request must say its length, at most {LARGEST_BODY:,} bytes")
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise InputError("the request is no JSON") from None
        if not isinstance(found, dict):
            raise InputError("the request must be a JSON object")
        return found

    def refuse(self, code: int, words: str) -> None:
        self.close_connection = True  # what else was sent is not read
        self.reply(code, {"error": words})

    def reply(self, code: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        for name, value in sent.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *arguments: Any) -> None:
        """Print nothing for each request."""


class Server(ThreadingHTTPServer):
    """Serves one policy until it is shut down."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, policy: Policy, host: str = "127.0.0.1", port: int = 8765, token: str | None = None):
        if not 0 <= port < 2**16:
            raise InputError(f"--port is {port}; it must be from 0 to 65535")
        if host not in LOOPBACK and not token:
            raise InputError(f"{host} can be reached from other machines; give a token (${TOKEN_VARIABLE})")
        self.token = token
        self.batcher = Batcher(policy)
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise InputError(f"cannot serve at {host}:{port} ({error.strerror}); choose another --port") from error

    @property
    def address(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("drol_runtime.serve", description="Serve an exported policy over HTTP.")
    parser.add_argument("bundle", help="the folder that `drol export` wrote")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve at (default: this machine only)")
    parser.add_argument("--port", type=int, default=8765, help="port, 0 for any that is free (default: 8765)")
    parser.add_argument("--clamp", action="store_true", help="bring observations into the range of the data")
    parsed = parser.parse_args(arguments)
    try:
        serve(parsed.bundle, parsed.host, parsed.port, parsed.clamp)
    except InputError as error:
        print(f"drol_runtime: error: {error}", file=sys.stderr)
        return 2
    return 0


def serve(bundle: str, host: str = "127.0.0.1", port: int = 8765, clamp: bool = False) -> None:
    """Serve a policy until Ctrl-C; the token is that of the environment variable DROL_TOKEN.

    Args:
        bundle: The folder that `drol export` wrote.
        host: The address to serve at.
        port: The port; any that is free if 0.
        clamp: Whether observations are brought into the range of the data.
    """
    server = Server(load(bundle, clamp), host, port, os.environ.get(TOKEN_VARIABLE))
    print(f"serving {bundle} at {server.address}; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(f"served {server.batcher.requests:,} requests in {server.batcher.batches:,} batches")
    finally:
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
