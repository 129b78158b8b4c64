"""`drol_runtime.serve`, with real requests on loopback."""

import http.client
import json
import socket
import struct
import threading
import time

import drol_runtime
import numpy as np
import pytest
from drol_runtime import serve
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.export.export import export_policy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve")
    saved_run(path / "run", tiny_config(), (12,))
    return export_policy(drol.open_run(path / "run", task=tiny_task()), path / "bundle", best_of=2).path


@pytest.fixture
def start(folder):
    servers = []

    def begin(**options):
        server = serve.Server(drol_runtime.load(folder), port=0, **options)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(server, path="/act", body=None, method=None, **headers):
    """The status and the answer to one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
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


def ask_together(server, bodies):
    """The statuses and answers to requests of which all but the first wait while that is answered."""
    inner, entered, go, found = server.batcher.policy.act, threading.Event(), threading.Event(), {}

    def slow(*arguments, **named):
        entered.set()
        go.wait(20)
        return inner(*arguments, **named)

    def client(number):
        found[number] = ask(server, body=bodies[number])

    server.batcher.policy.act = slow
    threads = [threading.Thread(target=client, args=(number,)) for number in range(len(bodies))]
    threads[0].start()
    entered.wait(20)
    for thread in threads[1:]:
        thread.start()
    while server.batcher.waiting.qsize() + len(found) < len(bodies) - 1:
        time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(len(bodies))]


def test_requests_that_come_together_are_answered_together(start, folder):
    server, tests = start(), drol_runtime.read_bundle(folder).tests()
    bodies = [
        {"observation": tests["observation"][number].tolist(), "latent": tests["latent"][number].tolist()}
        for number in range(9)
    ]
    found = ask_together(server, bodies)
    np.testing.assert_allclose([answer["action"] for _, answer in found], tests["action"][:9], atol=1e-5)
    assert ask(server, "/status")[1] | {"outside": 0} == {
        "requests": 9, "observations": 9, "batches": 2, "largest_batch": 8, "refused": 0, "outside": 0,
    }  # fmt: skip


GOOD = {"observation": [0.0, 0.0, 0.0]}
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"observation": [float("nan"), 0.0, 0.0]}, "observation has values that are NaN"),
        ({"observation": [1e300, 0.0, 0.0]}, "observation has values that are NaN"),
        ({"observation": [0.0, 0.0, 0.0], "latent": [[1e300, 0.0]] * 2}, "latent has values that are NaN"),
        ({"observation": [[0.0, 0.0, 0.0], [LARGEST, LARGEST, LARGEST]]}, "the action is not finite"),
    ],
)
def test_what_one_client_sends_does_not_harm_those_who_ask_with_it(start, bad, words):
    server = start()
    server.batcher.policy.networks["actor"].kernels[0] *= 30  # so that large observations overflow
    found = ask_together(server, [GOOD, GOOD, bad, GOOD])
    assert [status for status, _ in found] == [200, 200, 400, 200]
    assert words in found[2][1]["error"]
    status = server.batcher.status()
    assert (status["requests"], status["observations"]) == (3, 3)


def test_rows_that_fill_up_a_batch_are_not_counted_as_outside(start):
    server = start()
    assert ask(server, body={"observation": [[99.0, 0.0, 0.0]] * 5})[0] == 200
    assert server.batcher.status()["outside"] == 5


def test_when_too_many_wait_the_next_is_told_to_come_back(start, monkeypatch):
    monkeypatch.setattr(serve, "WAITING", 1)
    server = start()
    go, entered = threading.Event(), threading.Event()
    inner = server.batcher.policy.act

    def slow(*arguments, **named):
        entered.set()
        go.wait(20)
        return inner(*arguments, **named)

    server.batcher.policy.act = slow
    body = {"observation": [0.0, 0.0, 0.0]}
    clients = [threading.Thread(target=ask, args=(server,), kwargs={"body": body}) for _ in range(2)]
    clients[0].start()
    entered.wait(20)
    clients[1].start()
    while server.batcher.waiting.qsize() < 1:
        pass
    status, found = ask(server, body=body)
    go.set()
    for client in clients:
        client.join()
    assert (status, found) == (503, {"error": "too many requests wait; come back"})
    assert ask(server, body=body)[0] == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"not json", "is no JSON"),
        (b"[" * 5000, "is no JSON"),
        (b"[1]", "must be a JSON object"),
        ({}, "has no observation"),
        ({"observation": [1.0]}, "this policy takes [3]"),
        ({"observation": [[0, 0, 0], [1]]}, "lists of different lengths"),
        ({"observation": ["a", "b", "c"]}, "must be numbers"),
        ({"observation": [1e999, 0, 0]}, "must be finite"),
        ({"observation": {"__class__": 1}}, "knows no names"),
        ({"observation": [0, 0, 0], "latent": [1]}, "latent has shape"),
        ({"observation": [0, 0, 0], "seed": "x"}, "seed is 'x'"),
        ({"observation": [0, 0, 0], "bset_of": 3}, "unknown entry 'bset_of'"),
        ({"observation": [[0, 0, 0]] * 300}, "at most 256"),
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
    assert (status, "must say its length" in found["error"]) == (400, True)
    assert ask(server, "/status")[0] == 200


def converse(server, sent):
    """All that the server answers to these bytes until it closes the connection."""
    with socket.create_connection(server.server_address, timeout=20) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize(
    "header",
    ["Content-Length: \u00b2", "Content-Length: " + "9" * 5000, "Content-Length: 2\r\nTransfer-Encoding: chunked"],
    ids=["superscript", "digits", "chunked"],
)
def test_a_length_that_is_none_is_answered(start, header, capsys):
    answer = converse(start(), f"POST /act HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode("latin-1"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"must say its length" in answer
    assert capsys.readouterr().err == ""


def test_a_client_that_goes_away_within_a_body_leaves_no_trace(start, capsys):
    server, handled = start(), threading.Event()
    inner = server.handle_error
    server.handle_error = lambda *arguments: (inner(*arguments), handled.set())
    connection = socket.create_connection(server.server_address, timeout=20)
    connection.sendall(b"POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by a reset
    connection.close()
    assert handled.wait(20)
    assert capsys.readouterr().err == ""
    assert ask(server, body=GOOD)[0] == 200


@pytest.mark.parametrize("first", ["POST /other", "GET /status", "GET /other"])
@pytest.mark.parametrize("header", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_a_body_that_is_not_read_does_not_become_a_request(start, first, header):
    body = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    sent = f"{first} HTTP/1.1\r\nHost: localhost\r\n{header.format(len(body))}\r\n\r\n{body}"
    answer = converse(start(), sent.encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answer


def test_other_paths_and_foreign_hosts_are_refused(start):
    server = start()
    assert ask(server, "/../../etc/passwd")[0] == 404
    assert ask(server, "/status", body={})[0] == 404
    assert ask(server, "/", Host="robot.example")[0] == 421


def test_other_machines_need_a_token(start, folder):
    with pytest.raises(drol_runtime.InputError, match=r"0\.0\.0\.0 can be reached from other machines; give a token"):
        serve.Server(drol_runtime.load(folder), "0.0.0.0", 0)
    server = start(token="secret")
    body = {"observation": [0.0, 0.0, 0.0]}
    assert ask(server, body=body)[0] == 401
    assert ask(server, body=body, Authorization="Bearer wrong")[0] == 401
    assert ask(server, body=body, Authorization="Bearer secret")[0] == 200
    assert ask(server, body=body, Authorization="Bearer secret", Host="192.168.1.5:8765")[0] == 200


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_that_there_is_not_is_one_line(folder, port):
    with pytest.raises(drol_runtime.InputError, match=f"--port is {port}; it must be from 0 to 65535"):
        serve.Server(drol_runtime.load(folder), port=port)


def test_a_port_that_is_taken_is_one_line(start, folder):
    port = start().server_address[1]
    with pytest.raises(drol_runtime.InputError, match=f"cannot serve at 127.0.0.1:{port}"):
        serve.Server(drol_runtime.load(folder), port=port)
