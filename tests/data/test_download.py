"""Fetching from a server on this machine that truncates, corrupts, stalls and lies."""

import hashlib
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from step_files import flat_steps, refusal, write_hdf5
from web_server import NAME, WHOLE, Server, good, make_file, requested_start, send, version

from drol.data.download import download
from drol.data.readers.npz import check_npz
from drol.errors import InputError
from drol.tasks.d4rl import SOURCE as D4RL

QUICK = 1.0  # second of silence


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("drol.data.download.PAUSE_SECONDS", 0.0)


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
    message = refusal(download, NAME, folder, addresses, check, timeout=QUICK, **options)
    assert str(folder / NAME) in message
    assert not (folder / NAME).exists()
    return message


def test_a_file_is_fetched_verified_and_its_sum_recorded(serve, tmp_path):
    server = serve(good)
    seen = []
    folder = tmp_path / "new" / "folder"
    path = download(NAME, folder, [server.address], check, lambda *amount: seen.append(amount), timeout=QUICK)
    assert path.read_bytes() == WHOLE
    assert seen[0] == (0, len(WHOLE), NAME)
    assert seen[-1] == (len(WHOLE), len(WHOLE), NAME)
    assert (folder / f"{NAME}.sha256").read_text() == f"{hashlib.sha256(WHOLE).hexdigest()}  {NAME}\n"
    assert sorted(entry.name for entry in folder.iterdir()) == [NAME, f"{NAME}.sha256"]


def test_a_file_that_is_here_is_verified_and_not_fetched(serve, tmp_path):
    (tmp_path / NAME).write_bytes(WHOLE)
    server = serve(good)
    assert download(NAME, tmp_path, [server.address], check, timeout=QUICK) == tmp_path / NAME
    assert server.requests == []
    assert (tmp_path / f"{NAME}.sha256").exists()  # recorded on first use


def test_a_file_that_is_here_but_bad_is_fetched_again(serve, tmp_path):
    download(NAME, tmp_path, [serve(good).address], check, timeout=QUICK)
    changed = bytearray(WHOLE)
    changed[500] ^= 1
    (tmp_path / NAME).write_bytes(changed)
    download(NAME, tmp_path, [serve(good).address], check, timeout=QUICK)
    assert (tmp_path / NAME).read_bytes() == WHOLE


def test_a_truncated_answer_is_completed_by_range(serve, tmp_path):
    def cut(handler, number):
        start = requested_start(handler)
        piece = WHOLE[start : start + 1500]
        if start:
            whole = f"bytes {start}-{len(WHOLE) - 1}/{len(WHOLE)}"
            send(handler, piece, len(WHOLE) - start, 206, Content_Range=whole, ETag=version(WHOLE))
        else:
            send(handler, piece, len(WHOLE), ETag=version(WHOLE))

    server = serve(cut)
    path = download(NAME, tmp_path, [server.address], check, timeout=QUICK)
    assert path.read_bytes() == WHOLE
    assert server.requests[:3] == [None, "bytes=1500-", "bytes=3000-"]


def write_part(folder, content, of=WHOLE):
    """Write the files that a killed process leaves."""
    (folder / f"{NAME}.part").write_bytes(content)
    (folder / f"{NAME}.part.etag").write_text(version(of))


def test_what_came_before_a_crash_is_not_fetched_again(serve, tmp_path):
    write_part(tmp_path, WHOLE[:1234])
    server = serve(good)
    assert download(NAME, tmp_path, [server.address], check, timeout=QUICK).read_bytes() == WHOLE
    assert server.requests == ["bytes=1234-"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [NAME, f"{NAME}.sha256"]


@pytest.mark.parametrize("tag", ["a version", "no version", "another version", "a weak version", "nonsense"])
def test_halves_of_two_versions_are_never_joined(serve, tmp_path, tag):
    """A format without checksums, such as HDF5: nothing but the version shows that the halves do not belong."""
    old, new = bytes(5000), bytes([1]) * 5000
    write_part(tmp_path, old[:2000], of=old)
    record = tmp_path / f"{NAME}.part.etag"
    if tag == "no version":
        record.unlink()
    elif tag == "a weak version":
        record.write_text(f"W/{version(old)}")
    elif tag == "nonsense":
        record.write_bytes(b"\xff\r\nX-Header: 1")

    def answer(handler, number):
        if tag == "another version":  # a server that pays no attention to If-Range, but says what it sends
            start = requested_start(handler)
            whole = f"bytes {start}-{len(new) - 1}/{len(new)}"
            send(handler, new[start:], status=206 if start else 200, ETag=version(new), Content_Range=whole)
        else:
            good(handler, number, new)

    path = download(NAME, tmp_path, [serve(answer).address], lambda path: None, timeout=QUICK)
    assert path.read_bytes() == new


def test_an_hdf5_file_is_fetched(serve, tmp_path):
    """h5py must read the file although it is locked."""
    write_hdf5(tmp_path / "steps.hdf5", flat_steps())
    content = (tmp_path / "steps.hdf5").read_bytes()
    server = serve(lambda handler, number: good(handler, number, content))
    path = download("pen-human-v1.hdf5", tmp_path / "out", [server.address], D4RL.check_file, timeout=QUICK)
    assert path.read_bytes() == content


def test_a_partial_file_that_is_complete_needs_no_more(serve, tmp_path):
    write_part(tmp_path, WHOLE)
    server = serve(good)
    assert download(NAME, tmp_path, [server.address], check, timeout=QUICK).read_bytes() == WHOLE
    assert server.requests == [f"bytes={len(WHOLE)}-", None]


@pytest.mark.parametrize("rest", [make_file(1)[:900], make_file(1) + bytes(50)], ids=["shorter", "longer"])
def test_a_partial_file_of_another_version_is_given_up(serve, tmp_path, rest):
    write_part(tmp_path, rest)
    assert download(NAME, tmp_path, [serve(good).address], check, timeout=QUICK).read_bytes() == WHOLE


def test_a_server_without_ranges_begins_again(serve, tmp_path):
    write_part(tmp_path, WHOLE[:1234])
    server = serve(lambda handler, _: send(handler, WHOLE))
    assert download(NAME, tmp_path, [server.address], check, timeout=QUICK).read_bytes() == WHOLE


def test_a_server_that_always_truncates_is_given_up_and_the_part_kept(serve, tmp_path):
    server = serve(lambda handler, _: send(handler, WHOLE[:1000], len(WHOLE), ETag=version(WHOLE)))
    message = failure(tmp_path, server.address)
    assert f"ends at 1,000 of {len(WHOLE):,} bytes" in message
    assert "resumes after 1,000 bytes" in message
    assert (tmp_path / f"{NAME}.part").read_bytes() == WHOLE[:1000]


def test_a_corrupt_file_is_removed(serve, tmp_path):
    changed = bytearray(WHOLE)
    changed[700] ^= 0xFF
    message = failure(tmp_path, serve(lambda handler, _: send(handler, bytes(changed))).address)
    assert "damaged" in message
    assert list(tmp_path.iterdir()) == []  # no sum of it was recorded


def test_a_length_that_is_too_short_is_found_out(serve, tmp_path):
    message = failure(tmp_path, serve(lambda handler, _: send(handler, WHOLE, 2000)).address)
    assert "damaged" in message


def test_a_length_that_is_too_long_is_found_out(serve, tmp_path):
    message = failure(tmp_path, serve(lambda handler, _: send(handler, WHOLE, len(WHOLE) + 10)).address)
    assert f"ends at {len(WHOLE):,} of {len(WHOLE) + 10:,} bytes" in message


def test_a_file_without_a_length_is_taken_to_its_end(serve, tmp_path):
    def no_length(handler, _):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(WHOLE)

    assert download(NAME, tmp_path, [serve(no_length).address], check, timeout=QUICK).read_bytes() == WHOLE


def test_a_server_that_falls_silent_is_given_up(serve, tmp_path):
    released = threading.Event()

    def stall(handler, _):
        send(handler, WHOLE[:100], len(WHOLE))
        released.wait(60)

    server = serve(stall)
    try:
        message = failure(tmp_path, server.address)
    finally:
        released.set()
    assert "timed out" in message


def test_the_next_address_is_asked_when_one_fails(serve, tmp_path):
    broken = [
        serve(lambda handler, _: send(handler, b"gone", status=404)),
        serve(lambda handler, _: send(handler, b"busy", status=503)),
        serve(lambda handler, _: send(handler, WHOLE[:50] + bytes(len(WHOLE) - 50))),
    ]
    last = serve(good)
    addresses = [server.address for server in (*broken, last)]
    assert download(NAME, tmp_path, addresses, check, timeout=QUICK).read_bytes() == WHOLE
    assert [len(server.requests) for server in broken] == [1, 3, 1]  # only what may pass is tried again


def test_another_file_than_the_recorded_one_is_refused(serve, tmp_path):
    (tmp_path / f"{NAME}.sha256").write_text(f"{hashlib.sha256(WHOLE).hexdigest()}  {NAME}\n")
    message = failure(tmp_path, serve(lambda handler, number: good(handler, number, make_file(1))).address)
    assert f"recorded in {tmp_path / NAME}.sha256" in message
    message = failure(tmp_path, serve(good).address, sha256="0" * 64)
    assert "the one published is 0000000000000000..." in message


def test_without_a_network_the_answer_names_the_path_and_nothing_is_made(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/{NAME}"
        message = failure(tmp_path, closed, f"http://no-such-host.invalid/{NAME}")
    assert "127.0.0.1: " in message
    assert "no-such-host.invalid: " in message
    assert f"put the file at {tmp_path / NAME}" in message
    assert list(tmp_path.iterdir()) == []


def test_a_redirection_to_a_local_file_is_not_followed(serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(WHOLE)
    server = serve(lambda handler, _: send(handler, b"", status=302, Location=secret.as_uri()))
    failure(tmp_path / "out", server.address)


@pytest.mark.parametrize("to", ["http://[bad", "http://127.0.0.1:notaport/", "//", "http://\x1b[31m/", "http://a b/"])
def test_a_redirection_to_no_address_is_refused_and_leaves_nothing(serve, tmp_path, to):
    failure(tmp_path, serve(lambda handler, _: send(handler, b"", status=302, Location=to)).address)
    assert list(tmp_path.iterdir()) == []


def test_what_a_server_says_does_not_reach_the_terminal_raw(serve, tmp_path):
    def answer(handler, _):
        handler.wfile.write(b"HTTP/1.1 404 \x1b[2J\x07gone\r\nContent-Length: 0\r\n\r\n")

    message = failure(tmp_path, serve(answer).address)
    assert "404 \\x1b[2J\\x07gone" in message
    assert message.isprintable()


def test_a_bad_file_stays_in_its_place_while_no_server_answers(tmp_path):
    (tmp_path / NAME).write_bytes(b"mine")
    message = refusal(download, NAME, tmp_path, ["http://no-such-host.invalid/x"], check, timeout=QUICK)
    assert "the file that is there is bad" in message
    assert (tmp_path / NAME).read_bytes() == b"mine"


def test_a_redirection_on_the_web_is_followed(serve, tmp_path):
    last = serve(good)
    first = serve(lambda handler, _: send(handler, b"", status=302, Location=last.address))
    assert download(NAME, tmp_path, [first.address], check, timeout=QUICK).read_bytes() == WHOLE


def test_a_link_in_the_place_of_the_partial_file_is_not_followed(serve, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{NAME}.part").symlink_to(outside)
    with pytest.raises(InputError, match="cannot write"):
        download(NAME, folder, [serve(good).address], check, timeout=QUICK)
    assert outside.read_text() == "mine"


def test_two_at_once_do_not_write_to_one_file(serve, tmp_path):
    started, released = threading.Event(), threading.Event()

    def slow(handler, number):
        send(handler, WHOLE[:1000], len(WHOLE), ETag=version(WHOLE))
        handler.wfile.flush()
        if number > 1:
            return
        started.set()
        released.wait(20)
        handler.wfile.write(WHOLE[1000:])

    server = serve(slow)
    first = threading.Thread(target=download, args=(NAME, tmp_path, [server.address], check), kwargs={"timeout": 20.0})
    first.start()
    assert started.wait(20)
    with pytest.raises(InputError, match="another process is fetching"):
        download(NAME, tmp_path, [server.address], check, timeout=QUICK)
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
        path = download(NAME, folder, [server.address], check, timeout=QUICK)
    except InputError:
        assert not (folder / NAME).exists()
    else:
        assert path.read_bytes() == WHOLE
    finally:
        server.close()
