"""`drol_runtime.policy_server`, with real requests on loopback."""

import contextlib
import http.client
import json
import socket
import struct
import threading

import drol_runtime
import numpy as np
import pytest
from drol_runtime import http_server
from drol_runtime.policy_server import PolicyServer
from running_servers import converse, running


@pytest.fixture
def folder(served_bundle):
    return served_bundle


@pytest.fixture
def start(folder):
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(running(PolicyServer(drol_runtime.load(folder), port=0, **options)))


def ask(server, path="/act", body=None, method=None, **headers):
    """The status and the answer to one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    sent = body if isinstance(body, bytes | None) else json.dumps(body)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method or ("GET" if body is None else "POST"), path, sent, headers)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def test_answers_are_those_of_the_policy(start, folder):
    server, tests = start(), drol_runtime.read_bundle(folder).tests()
    observation, latent = tests["observation"][:3].tolist(), tests["latent"][:3].tolist()
    status, found = ask(server, body={"observation": observation, "latent": latent})
    assert status == 200
    np.testing.assert_allclose(found["action"], tests["action"][:3], atol=1e-5)
    expected = drol_runtime.load(folder).act(observation[0], seed=4)
    np.testing.assert_allclose(
        ask(server, body={"observation": observation[0], "seed": 4})[1]["action"], expected, atol=1e-6
    )
    described = ask(server, "/")[1]
    assert (described["algorithm"], described["observation"]["size"]) == ("drol", 3)


def test_requests_at_the_same_time_are_each_answered_with_their_own_action(start, folder):
    server, tests, found = start(), drol_runtime.read_bundle(folder).tests(), {}

    def client(number):
        body = {"observation": tests["observation"][number].tolist(), "latent": tests["latent"][number].tolist()}
        found[number] = ask(server, body=body)[1]["action"]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([found[number] for number in range(9)], tests["action"][:9], atol=1e-5)
    assert ask(server, "/status")[1] | {"outside": 0} == {"requests": 9, "observations": 9, "outside": 0}


GOOD = {"observation": [0.0, 0.0, 0.0]}
LARGEST = float(np.finfo(np.float32).max)


def test_observations_outside_the_data_are_counted(start):
    server = start()
    assert ask(server, body={"observation": [[99.0, 0.0, 0.0]] * 5})[0] == 200
    assert ask(server, "/status")[1] == {"requests": 1, "observations": 5, "outside": 5}


def test_an_action_that_is_not_finite_is_an_error(start):
    server = start()
    server.policy.networks["actor"].kernels[0] *= 30  # so that large observations overflow
    status, found = ask(server, body={"observation": [[0.0, 0.0, 0.0], [LARGEST, LARGEST, LARGEST]]})
    assert (status, "the action is not finite" in found["error"]) == (400, True)
    assert ask(server, "/status")[1]["requests"] == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"not json", "is not valid JSON"),
        (b"[" * 5000, "is not valid JSON"),
        (b"[" * 1_000_000, "is not valid JSON"),
        (b"[1]", "must be a JSON object"),
        ({}, "has no observation"),
        ({"observation": [1.0]}, "this policy takes [3]"),
        ({"observation": [[0, 0, 0], [1]]}, "lists of numbers have different lengths"),
        ({"observation": ["a", "b", "c"]}, "must be numbers"),
        ({"observation": [1e999, 0, 0]}, "must be finite"),
        ({"observation": [float("nan"), 0, 0]}, "observation has values that are NaN"),
        ({"observation": [1e300, 0, 0]}, "observation has values that are NaN"),
        ({"observation": [0, 0, 0], "latent": [[1e300, 0]] * 2}, "latent has values that are NaN"),
        ({"observation": {"__class__": 1}}, "knows no names"),
        ({"observation": [0, 0, 0], "latent": [1]}, "latent has shape"),
        ({"observation": [0, 0, 0], "seed": "x"}, "seed is 'x'"),
        ({"observation": [0, 0, 0], "bset_of": 3}, "unknown entry 'bset_of'"),
        ({"observation": [[0, 0, 0]] * 300}, "at most 256"),
        ({"observation": [0, 0, 0], "seed": True}, "seed is True"),
    ],
)
def test_a_bad_request_is_answered_and_the_server_stays_up(start, body, words):
    server = start()
    status, found = ask(server, body=body)
    assert status == 400
    assert words in found["error"]
    assert ask(server, body={"observation": [0.0, 0.0, 0.0]})[0] == 200


def test_a_body_that_is_too_large_is_not_read(start):
    server = start()
    status, found = ask(server, body=b"", Content_Length=str(10**12))
    assert (status, "is larger than 1,048,576 bytes" in found["error"]) == (413, True)
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    head = b"POST /act HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        connection.sendall(head)
        for _ in range(10_000):  # 640 MB, if the server read them
            connection.sendall(chunk)
        pytest.fail("the server read a body without an end")
    assert ask(server, "/status")[0] == 200


def test_a_body_in_chunks_is_read(start):
    body = json.dumps(GOOD).encode()
    head = b"POST /act HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = converse(start(), head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: \u00b2",
        "Content-Length: " + "9" * 5000,
        "Content-Length: -1",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Content-Length: 2\r\nContent-Length: 40",
        "Content-Length: 2, 40",
        "Host: localhost",
    ],
    ids=["superscript", "digits", "negative", "chunked", "two lengths", "two in one", "two hosts"],
)
@pytest.mark.parametrize("first", ["POST /act", "GET /status"])
def test_a_request_of_unclear_length_or_host_is_rejected(start, first, header, caplog):
    head = f"{first} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n"
    answer = converse(start(), head.encode("latin-1") + b"{}GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert caplog.messages == []


def test_a_client_that_goes_away_within_a_body_leaves_no_trace(start, caplog):
    server = start()
    for reset in (True, False):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        connection.sendall(b"POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert ask(server, body=GOOD)[0] == 200
    while server.uvicorn.server_state.tasks:
        pass
    assert caplog.messages == []


@pytest.mark.parametrize("first", ["POST /other", "GET /status", "GET /other"])
@pytest.mark.parametrize("header", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_a_body_that_is_not_read_does_not_become_a_request(start, first, header, caplog, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 1)
    body = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    sent = f"{first} HTTP/1.1\r\nHost: localhost\r\n{header.format(len(body))}\r\n\r\n{body}"
    answer = converse(start(), sent.encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert caplog.messages == []


def test_an_invalid_chunk_after_a_head_that_is_rejected_is_answered_once(start, caplog):
    server = start()
    head = b"POST /act HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head + b"26\r\n" + b"x" * 36 + b"\r\n0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert ask(server, body=GOOD)[0] == 200
    assert caplog.messages == []


BEGINNINGS = {
    "nothing": b"",
    "half a head": b"POST /act HT",
    "half a body": b"POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
    "an answered request": b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_slow_client_is_disconnected_however_often_it_sends_a_byte(start, name, monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.5)
    server = start()
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        connection.sendall(BEGINNINGS[name])
        connection.settimeout(0.05)
        while True:
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1 << 16):
                    break
            connection.sendall(b" " if name == "half a body" else b"x")
    assert ask(server, "/status")[0] == 200


def test_slow_clients_do_not_keep_others_out(start, monkeypatch):
    server = start()
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            slow.sendall(BEGINNINGS["half a body"])
        assert ask(server, body=GOOD)[0] == 200


def test_beyond_the_most_connections_a_request_is_answered_503(start, monkeypatch):
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.5)
    server = start()
    request = b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        assert converse(server, request).startswith(b"HTTP/1.1 503 ")
        while not converse(server, request).startswith(b"HTTP/1.1 200 "):  # until the idle ones are disconnected
            pass


def test_other_paths_and_methods_are_rejected(start):
    server = start()
    for path in ("/../../etc/passwd", "/status/", "//", "/act/x"):
        assert ask(server, path)[0] == 404
    assert ask(server, "/status", body={})[0] == 405
    assert ask(server, "/act")[0] == 405
    assert converse(server, b"GET http://[bad/ HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_only_names_of_this_machine_are_answered(start):
    server = start()
    for host in ("robot.example", "127.0.0.1.robot.example", "evil@localhost", "localhost:1:2", "[::1", "", "10.0.0.1"):
        assert ask(server, "/", Host=host)[0] == 421, host
    for host in ("localhost", "LOCALHOST:9", "127.0.0.1:8765", "[::1]", "[::1]:8765"):
        assert ask(server, "/", Host=host)[0] == 200, host


def test_pages_of_other_sites_are_rejected(start):
    server = start()
    for origin in ("http://evil.example", "null", "http://localhost:1", "https://localhost.evil.example", ""):
        assert ask(server, body=GOOD, Origin=origin, Host="localhost:8765", Content_Type="text/plain")[0] == 403
    assert ask(server, body=GOOD, Origin="http://localhost:8765", Host="localhost:8765")[0] == 200
    assert ask(server, "/status")[1]["requests"] == 1


def test_other_machines_need_a_token(start, folder):
    with pytest.raises(drol_runtime.InputError, match=r"0\.0\.0\.0 can be reached from other machines; give a token"):
        PolicyServer(drol_runtime.load(folder), "0.0.0.0", 0)
    server = start(token="secret")
    assert ask(server, body=GOOD)[0] == 401
    for wrong in ("Bearer wrong", "secret", "Bearer secret2", "Bearer s\xe9cret"):
        assert ask(server, body=GOOD, Authorization=wrong)[0] == 401
    assert ask(server, body=GOOD, Authorization="Bearer secret")[0] == 200
    assert ask(server, body=GOOD, Authorization="Bearer secret", Host="192.168.1.5:8765")[0] == 200


@pytest.mark.parametrize("token", ["s\u00e9cret", "two words", "line\nbreak", "\udce9"])
def test_a_token_that_clients_encode_differently_is_one_line(folder, token):
    with pytest.raises(drol_runtime.InputError, match="the token must consist of printable ASCII characters"):
        PolicyServer(drol_runtime.load(folder), port=0, token=token)


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_out_of_range_is_one_line(folder, port):
    with pytest.raises(drol_runtime.InputError, match=f"--port is {port}; it must be from 0 to 65535"):
        PolicyServer(drol_runtime.load(folder), port=port)


def test_a_port_that_is_taken_is_one_line(start, folder):
    port = start().port
    with pytest.raises(drol_runtime.InputError, match=f"cannot serve at 127.0.0.1:{port}"):
        PolicyServer(drol_runtime.load(folder), port=port)


def test_the_ipv6_loopback_is_served(folder):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")
    with running(PolicyServer(drol_runtime.load(folder), "::1", 0)) as server:
        assert server.address == f"http://[::1]:{server.port}"
