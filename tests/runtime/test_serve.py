"""`drol_runtime.serve`, with real requests on loopback."""

import http.client
import json
import threading

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


def test_requests_that_come_together_are_answered_together(start, folder):
    server, tests = start(), drol_runtime.read_bundle(folder).tests()
    inner, entered = server.batcher.policy.act, threading.Event()
    go = threading.Event()

    def slow(*arguments, **named):
        entered.set()
        go.wait(20)
        return inner(*arguments, **named)

    server.batcher.policy.act = slow
    found = {}

    def client(number):
        body = {"observation": tests["observation"][number].tolist(), "latent": tests["latent"][number].tolist()}
        found[number] = ask(server, body=body)[1]["action"]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(9)]
    threads[0].start()
    entered.wait(20)
    for thread in threads[1:]:
        thread.start()
    while server.batcher.waiting.qsize() < 8:
        pass
    go.set()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([found[number] for number in range(9)], tests["action"][:9], atol=1e-5)
    assert ask(server, "/status")[1] | {"outside": 0} == {
        "requests": 9, "observations": 9, "batches": 2, "largest_batch": 8, "refused": 0, "outside": 0,
    }  # fmt: skip


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


def test_a_port_that_is_taken_is_one_line(start, folder):
    port = start().server_address[1]
    with pytest.raises(drol_runtime.InputError, match=f"cannot serve at 127.0.0.1:{port}"):
        serve.Server(drol_runtime.load(folder), port=port)
