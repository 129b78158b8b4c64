"""Find the servers that accept a connection, all of them at once and never later than a deadline."""

import socket
import threading
import time
import urllib.request
from collections.abc import Sequence
from urllib.parse import urlsplit


def find_reachable(addresses: Sequence[str], seconds: float) -> tuple[list[str], list[str]]:
    """Return the addresses whose server accepts a connection, in their order, and a reason for each of the others.

    Each is tried in a thread of its own, because looking up a name without a network cannot be given a time limit.
    """
    results: dict[str, str | None] = {}  # address -> why it cannot be reached; None: it can

    def connect(address: str) -> None:
        try:
            socket.create_connection(host_and_port(address), timeout=seconds).close()
            results[address] = None
        except (OSError, ValueError) as error:  # ValueError: an odd host or port
            results[address] = getattr(error, "strerror", None) or str(error)

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=connect, args=(address,), daemon=True) for address in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    found = {address: results.get(address, f"no answer in {seconds:g} s") for address in addresses}
    reasons = [f"{urlsplit(address).hostname}: {reason}" for address, reason in found.items() if reason is not None]
    return [address for address in addresses if found[address] is None], reasons


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and port to connect to: of the address, or of the proxy that stands before it."""
    parts = urlsplit(address)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
