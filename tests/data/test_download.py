"""Fetching from a server on this machine that truncates, corrupts, stalls and lies."""

import hashlib
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from step_files import refusal
from web_server import NAME, WHOLE, Server, good, make_file, requested_start, send

from drol.data.download import Patience, download
from drol.data.files.npz import check_npz
from drol.errors import InputError

QUICK = Patience(connect_seconds=1.0, stall_seconds=0.2, attempts=2, pause_seconds=0.0)


@pytest.fixture
def serve():
    servers = []

    def start(answer) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def check(path: Path) -> None:
    check_npz(path, ("observations", "actions"))


def failure(folder: Path, *addresses: str, **options) -> str:
    message = refusal(download, NAME, folder, addresses, check, patience=QUICK, **options)
    assert str(folder / NAME) in message
    assert not (folder / NAME).exists()
    return message


def test_a_file_is_fetched_verified_and_its_sum_recorded(serve, tmp_path):
    server = serve(good)
    seen = []
    folder = tmp_path / "new" / "folder"
    path = download(NAME, folder, [server.address], check, lambda *amount: seen.append(amount), patience=QUICK)
    assert path.read_bytes() == WHOLE
    assert seen[0] == (0, len(WHOLE), NAME)
    assert seen[-1] == (len(WHOLE), len(WHOLE), NAME)
    assert (folder / f"{NAME}.sha256").read_text() == f"{hashlib.sha256(WHOLE).hexdigest()}  {NAME}\n"
    assert sorted(entry.name for entry in folder.iterdir()) == [NAME, f"{NAME}.sha256"]


def test_a_file_that_is_here_is_verified_and_not_fetched(serve, tmp_path):
    (tmp_path / NAME).write_bytes(WHOLE)
    server = serve(good)
    assert download(NAME, tmp_path, [server.address], check, patience=QUICK) == tmp_path / NAME
    assert server.requests == []
    assert (tmp_path / f"{NAME}.sha256").exists()  # recorded on first use


def test_a_file_that_is_here_but_bad_is_put_aside_and_fetched_again(serve, tmp_path):
    download(NAME, tmp_path, [serve(good).address], check, patience=QUICK)
    changed = bytearray(WHOLE)
    changed[500] ^= 1
    (tmp_path / NAME).write_bytes(changed)
    download(NAME, tmp_path, [serve(good).address], check, patience=QUICK)
    assert (tmp_path / NAME).read_bytes() == WHOLE
    [kept] = (tmp_path / "quarantine").iterdir()
    assert kept.read_bytes() == changed
    assert kept.name.startswith(f"{NAME}.")


def test_a_truncated_answer_is_completed_by_range(serve, tmp_path):
    def cut(handler, number):
        start = requested_start(handler)
        piece = WHOLE[start : start + 1500]
        if start:
            whole = f"bytes {start}-{len(WHOLE) - 1}/{len(WHOLE)}"
            send(handler, piece, len(WHOLE) - start, 206, Content_Range=whole)
        else:
            send(handler, piece, len(WHOLE))

    server = serve(cut)
    path = download(NAME, tmp_path, [server.address], check, patience=QUICK)
    assert path.read_bytes() == WHOLE
    assert server.requests[:3] == [None, "bytes=1500-", "bytes=3000-"]


def test_what_came_before_a_crash_is_not_fetched_again(serve, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(WHOLE[:1234])
    server = serve(good)
    assert download(NAME, tmp_path, [server.address], check, patience=QUICK).read_bytes() == WHOLE
    assert server.requests == ["bytes=1234-"]


def test_a_partial_file_that_is_complete_needs_no_more(serve, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(WHOLE)
    assert download(NAME, tmp_path, [serve(good).address], check, patience=QUICK).read_bytes() == WHOLE


@pytest.mark.parametrize("rest", [make_file(1)[:900], make_file(1) + bytes(50)], ids=["shorter", "longer"])
def test_a_partial_file_of_another_version_is_given_up(serve, tmp_path, rest):
    (tmp_path / f"{NAME}.part").write_bytes(rest)
    assert download(NAME, tmp_path, [serve(good).address], check, patience=QUICK).read_bytes() == WHOLE


def test_a_server_without_ranges_begins_again(serve, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(WHOLE[:1234])
    server = serve(lambda handler, _: send(handler, WHOLE))
    assert download(NAME, tmp_path, [server.address], check, patience=QUICK).read_bytes() == WHOLE


def test_a_server_that_always_truncates_is_given_up_and_the_part_kept(serve, tmp_path):
    server = serve(lambda handler, _: send(handler, WHOLE[:1000], len(WHOLE)))
    message = failure(tmp_path, server.address)
    assert f"ends at 1,000 of {len(WHOLE):,} bytes" in message
    assert "goes on after 1,000 bytes" in message
    assert (tmp_path / f"{NAME}.part").read_bytes() == WHOLE[:1000]


def test_a_corrupt_file_is_quarantined(serve, tmp_path):
    changed = bytearray(WHOLE)
    changed[700] ^= 0xFF
    message = failure(tmp_path, serve(lambda handler, _: send(handler, bytes(changed))).address)
    assert "damaged" in message
    [kept] = (tmp_path / "quarantine").iterdir()
    assert str(kept) in message
    assert kept.read_bytes() == changed
    assert [entry.name for entry in tmp_path.iterdir()] == ["quarantine"]  # no sum of it was recorded


def test_a_length_that_is_too_short_is_found_out(serve, tmp_path):
    message = failure(tmp_path, serve(lambda handler, _: send(handler, WHOLE, 2000)).address)
    assert "damaged" in message
    assert len(list((tmp_path / "quarantine").iterdir())) == 1


def test_a_length_that_is_too_long_is_found_out(serve, tmp_path):
    message = failure(tmp_path, serve(lambda handler, _: send(handler, WHOLE, len(WHOLE) + 10)).address)
    assert f"ends at {len(WHOLE):,} of {len(WHOLE) + 10:,} bytes" in message


def test_a_length_beyond_the_disk_is_refused_before_it_is_fetched(serve, tmp_path):
    message = failure(tmp_path, serve(lambda handler, _: send(handler, b"", 10**18)).address)
    assert "are free on the disk" in message


def test_a_file_without_a_length_is_taken_to_its_end(serve, tmp_path):
    def no_length(handler, _):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(WHOLE)

    assert download(NAME, tmp_path, [serve(no_length).address], check, patience=QUICK).read_bytes() == WHOLE


@pytest.mark.parametrize("drip", [False, True], ids=["silence", "a byte now and then"])
def test_a_server_that_stalls_is_given_up(serve, tmp_path, drip):
    released = threading.Event()

    def stall(handler, _):
        send(handler, WHOLE[:100], len(WHOLE))
        for _ in range(200):
            if released.wait(0.05):
                return
            if drip:
                handler.wfile.write(b"x")

    server = serve(stall)
    try:
        message = failure(tmp_path, server.address)
    finally:
        released.set()
    assert "timed out" in message or "stalls" in message


def test_the_next_address_is_asked_when_one_fails(serve, tmp_path):
    broken = [
        serve(lambda handler, _: send(handler, b"gone", status=404)),
        serve(lambda handler, _: send(handler, b"busy", status=503)),
        serve(lambda handler, _: send(handler, WHOLE[:50] + bytes(len(WHOLE) - 50))),
    ]
    last = serve(good)
    addresses = [server.address for server in (*broken, last)]
    assert download(NAME, tmp_path, addresses, check, patience=QUICK).read_bytes() == WHOLE
    assert [len(server.requests) for server in broken] == [1, 2, 1]  # only what may pass is tried again


def test_another_file_than_the_recorded_one_is_refused(serve, tmp_path):
    (tmp_path / f"{NAME}.sha256").write_text(f"{hashlib.sha256(WHOLE).hexdigest()}  {NAME}\n")
    message = failure(tmp_path, serve(lambda handler, number: good(handler, number, make_file(1))).address)
    assert f"recorded in {tmp_path / NAME}.sha256" in message
    message = failure(tmp_path, serve(good).address, sha256="0" * 64)
    assert "the one published is 0000000000000000..." in message


def test_without_a_network_the_answer_names_the_path_and_is_quick(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/{NAME}"
        message = failure(tmp_path, closed, f"http://no-such-host.invalid/{NAME}")
    assert "no server answers (127.0.0.1: " in message
    assert "no-such-host.invalid: " in message
    assert f"put the file at {tmp_path / NAME}" in message
    assert list(tmp_path.iterdir()) == []


def test_a_redirection_to_a_local_file_is_not_followed(serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(WHOLE)
    server = serve(lambda handler, _: send(handler, b"", status=302, Location=secret.as_uri()))
    failure(tmp_path / "out", server.address)


def test_a_redirection_on_the_web_is_followed(serve, tmp_path):
    last = serve(good)
    first = serve(lambda handler, _: send(handler, b"", status=302, Location=last.address))
    assert download(NAME, tmp_path, [first.address], check, patience=QUICK).read_bytes() == WHOLE


def test_a_link_in_the_place_of_the_partial_file_is_not_followed(serve, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{NAME}.part").symlink_to(outside)
    with pytest.raises(InputError, match="cannot write"):
        download(NAME, folder, [serve(good).address], check, patience=QUICK)
    assert outside.read_text() == "mine"


def test_two_at_once_do_not_write_to_one_file(serve, tmp_path):
    started, released = threading.Event(), threading.Event()

    def slow(handler, number):
        started.set()
        released.wait(20)
        good(handler, number)

    server = serve(slow)
    patience = Patience(connect_seconds=1.0, stall_seconds=20.0)
    first = threading.Thread(
        target=download, args=(NAME, tmp_path, [server.address], check), kwargs={"patience": patience}
    )
    first.start()
    assert started.wait(20)
    with pytest.raises(InputError, match="another process is fetching"):
        download(NAME, tmp_path, [server.address], check, patience=QUICK)
    released.set()
    first.join()
    assert (tmp_path / NAME).read_bytes() == WHOLE


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_server_does_the_file_is_whole_or_absent(tmp_path_factory, data):
    """Each request is answered with some piece of some content under some length and status."""
    folder = tmp_path_factory.mktemp("any")
    plan = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from([200, 200, 206, 206, 404, 416, 500]),
                st.integers(0, len(WHOLE)),
                st.integers(-20, 20),
                st.booleans(),
            ),
            min_size=1,
            max_size=6,
        )
    )

    def answer(handler, number):
        status, size, lie, damage = plan[min(number, len(plan)) - 1]
        start = requested_start(handler) if status == 206 else 0
        piece = bytearray(WHOLE[start : start + size])
        if damage and piece:
            piece[len(piece) // 2] ^= 1
        headers = {"Content_Range": f"bytes {start}-{len(WHOLE) - 1}/{len(WHOLE) + lie}"} if status == 206 else {}
        send(handler, bytes(piece), max(0, len(WHOLE) - start + lie), status, **headers)

    server = Server(answer)
    try:
        path = download(NAME, folder, [server.address], check, patience=QUICK)
    except InputError:
        assert not (folder / NAME).exists()
    else:
        assert path.read_bytes() == WHOLE
    finally:
        server.close()
