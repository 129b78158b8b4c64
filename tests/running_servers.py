"""Servers of `drol_runtime.http_server` in a thread of the test, and raw conversations with them."""

import contextlib
import socket
import threading


@contextlib.contextmanager
def running(server):
    """Run a server until the end of the block."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def converse(server, sent: bytes) -> bytes:
    """Return all that the server answers to these bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
