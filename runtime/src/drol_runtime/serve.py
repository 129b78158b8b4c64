"""Serve a policy over HTTP: `python -m drol_runtime.serve BUNDLE`; needs the extra `serve`.

POST /act   {"observation": [...]}                      -> {"action": [...]}
            {"observation": [[...], ...], "seed": 0}    -> {"action": [[...], ...]}; also "latent"
GET  /      the observations and actions of the policy
GET  /status  the numbers of requests, of observations, and of observations outside the data
"""

from __future__ import annotations

import argparse
import os
import sys

from drol_runtime.bundle import InputError
from drol_runtime.policy import load

PORT = 8765
TOKEN_VARIABLE = "DROL_TOKEN"


def serve(bundle: str, host: str = "127.0.0.1", port: int = PORT, clamp: bool = False) -> None:
    """Serve a policy until Ctrl-C. The token, if any, is read from the environment variable DROL_TOKEN.

    Args:
        bundle: The folder from `drol export`.
        host: The address to serve at; an address that other machines reach needs a token.
        port: The port; any free port if 0.
        clamp: Whether observations are clipped to the range of the data.
    """
    try:
        from drol_runtime.policy_server import PolicyServer
    except ImportError as error:
        raise InputError(
            f"serving needs starlette and uvicorn ({error}); install them: pip install 'drol-runtime[serve]', or "
            "'drol[serve]' with drol"
        ) from error

    with PolicyServer(load(bundle, clamp), host, port, os.environ.get(TOKEN_VARIABLE)) as server:
        print(f"serving {bundle} at {server.address}; Ctrl-C ends it", flush=True)
        server.run()
        print(f"served {server.requests:,} requests")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("drol_runtime.serve", description="Serve an exported policy over HTTP.")
    parser.add_argument("bundle", help="the folder that `drol export` wrote")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve at (default: this machine only)")
    parser.add_argument("--port", type=int, default=PORT, help=f"port, 0 for any free port (default: {PORT})")
    parser.add_argument("--clamp", action="store_true", help="clip observations to the range of the data")
    parsed = parser.parse_args(arguments)
    try:
        serve(parsed.bundle, parsed.host, parsed.port, parsed.clamp)
    except InputError as error:
        print(f"drol_runtime: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
