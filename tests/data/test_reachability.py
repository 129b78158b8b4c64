import socket
import threading
import time

import pytest

from drol.data.reachability import find_reachable, host_and_port


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_servers_that_listen_are_told_from_others():
    with socket.socket() as listening, socket.socket() as closed:
        for each in (listening, closed):
            each.bind(("127.0.0.1", 0))
        listening.listen()
        addresses = [f"http://127.0.0.1:{each.getsockname()[1]}/x" for each in (closed, listening)]
        odd = "http://127.0.0.1:99999/x"
        reachable, reasons = find_reachable([*addresses, odd], 5.0)
    assert reachable == [addresses[1]]
    assert [reason.split(":")[0] for reason in reasons] == ["127.0.0.1", "127.0.0.1"]


def test_looking_up_a_name_forever_does_not_hold_the_answer_up(monkeypatch):
    released = threading.Event()

    def look_up(*_, **__):
        released.wait(60)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "create_connection", look_up)
    start = time.monotonic()
    try:
        assert find_reachable(["http://somewhere.invalid/x"], 0.2) == ([], ["somewhere.invalid: no answer in 0.2 s"])
    finally:
        released.set()
    assert time.monotonic() - start < 30  # not the sixty seconds that the look-up takes


def test_no_address_is_no_server():
    assert find_reachable([], 1.0) == ([], [])


@pytest.mark.parametrize(
    ("address", "proxy", "expected"),
    [
        ("http://host/x", None, ("host", 80)),
        ("https://host/x", None, ("host", 443)),
        ("https://host:8443/x", None, ("host", 8443)),
        ("https://host/x", "http://proxy:3128", ("proxy", 3128)),
        ("https://host/x", "proxy:3128", ("proxy", 3128)),
    ],
)
def test_the_proxy_is_connected_to_where_there_is_one(monkeypatch, address, proxy, expected):
    if proxy:
        monkeypatch.setenv("https_proxy", proxy)
    assert host_and_port(address) == expected


def test_a_host_that_the_proxy_is_not_for_is_connected_to_itself(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "host")
    assert host_and_port("https://host/x") == ("host", 443)
