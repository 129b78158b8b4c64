"""Files and folders are complete or absent after any fault during their writing."""

import errno
import fcntl
import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk import largest_file

from drol import storage
from drol.errors import InputError
from drol.storage import (
    append_whole,
    describe_fault,
    exclusive,
    is_held,
    recover_folder,
    replace_folder,
    sync_folder,
    write_synced,
    write_whole,
)


def content(folder):
    """Every file below a folder, with its text."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def make_folder(path, text):
    path.mkdir()
    (path / "file").write_text(text)
    return path


def fail_on_call(monkeypatch, owner, name, number):
    """Make the call with this number, counted from 1, raise instead."""
    real, calls = getattr(owner, name), []

    def call(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("data", [b"\x00\xff", "text ä"])
def test_a_file_has_the_new_content_and_nothing_is_beside_it(tmp_path, data):
    path = tmp_path / "file"
    for each in (b"old", data):
        write_whole(path, each)
    assert path.read_bytes() == (data if isinstance(data, bytes) else data.encode())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "rename"), (Path, "open")])
def test_an_error_leaves_the_old_content(tmp_path, monkeypatch, owner, name):
    path = tmp_path / "file"
    write_whole(path, "old")
    fail_on_call(monkeypatch, owner, name, 1)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    monkeypatch.undo()
    assert content(tmp_path) == {"file": "old"}


@pytest.mark.parametrize("write", [write_whole, append_whole])
def test_a_disk_that_is_full_leaves_the_old_content_and_is_named_with_what_to_do(tmp_path, write):
    path = tmp_path / "file"
    write(path, "old\n")
    with largest_file(5000), pytest.raises(OSError, match="File too large") as caught:
        write(path, "new\n" * 2000)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert describe_fault(caught.value).startswith(f"{path} cannot be written (File too large); allow larger files")
    assert content(tmp_path) == {"file": "old\n"}
    write(path, "new\n")
    assert path.read_text() == ("new\n" if write is write_whole else "old\nnew\n")


def test_an_interrupt_leaves_no_partial_file(tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", "new")
    assert content(tmp_path) == {}


def test_other_errors_of_the_system_keep_their_words(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught:
        write_whole(tmp_path / "absent" / "file", "new")
    assert describe_fault(caught.value) == str(caught.value)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, Path.rename

    def note_fsync(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def note_rename(path, target):
        events.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "rename", note_rename)
    write_whole(tmp_path / "file", "new")
    assert events == ["file", "rename", "folder"]
    events.clear()
    write_synced(tmp_path / "other", b"new")
    sync_folder(tmp_path)
    assert events == ["file", "folder"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_takes_the_place_of_another(tmp_path, exists):
    if exists:
        make_folder(tmp_path / "name", "old")
    replace_folder(make_folder(tmp_path / ".name.partial", "new"), tmp_path / "name")
    assert content(tmp_path) == {"name/file": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


@pytest.mark.parametrize("call", [1, 2])
def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch, call):
    make_folder(tmp_path / "name", "old")
    partial = make_folder(tmp_path / ".name.partial", "new")
    fail_on_call(monkeypatch, Path, "rename", call)
    with pytest.raises(OSError, match="No space left"):
        replace_folder(partial, tmp_path / "name")
    assert content(tmp_path) == {"name/file": "old", ".name.partial/file": "new"}


KILLED = """
import os, sys
from pathlib import Path
from drol.storage import replace_folder
rename, calls = Path.rename, []
def killed(path, target):
    calls.append(path)
    if len(calls) == int(sys.argv[2]):
        os._exit(9)
    return rename(path, target)
Path.rename = killed
replace_folder(Path(sys.argv[1], ".name.partial"), Path(sys.argv[1], "name"))
"""


@pytest.mark.parametrize(("call", "left"), [(1, "name"), (2, ".name.old")])
def test_a_kill_between_two_renamings_is_recovered(tmp_path, call, left):
    make_folder(tmp_path / "name", "old")
    make_folder(tmp_path / ".name.partial", "new")
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path, str(call)], check=False)
    assert killed.returncode == 9
    assert content(tmp_path) == {f"{left}/file": "old", ".name.partial/file": "new"}
    recover_folder(tmp_path / "name")
    assert content(tmp_path) == {"name/file": "old", ".name.partial/file": "new"}
    replace_folder(tmp_path / ".name.partial", tmp_path / "name")
    assert content(tmp_path) == {"name/file": "new"}


def test_what_a_kill_after_the_renamings_left_is_removed(tmp_path):
    make_folder(tmp_path / "name", "new")
    make_folder(tmp_path / ".name.old", "old")
    recover_folder(tmp_path / "name")
    assert [path.name for path in tmp_path.iterdir()] == ["name"]
    recover_folder(tmp_path / "absent")
    assert content(tmp_path) == {"name/file": "new"}


def hold(path, held, released):
    with exclusive(path, "taken"):
        held.set()
        released.wait(60)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lock_refuses_a_second_process_until_the_first_ends(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "folder":
        path.mkdir()
    context = multiprocessing.get_context("spawn")
    held, released = context.Event(), context.Event()
    process = context.Process(target=hold, args=(path, held, released))
    process.start()
    try:
        assert held.wait(60)
        with pytest.raises(InputError, match=r"^taken$"), exclusive(path, "taken"):
            pass
    finally:
        released.set()
        process.join()
    assert process.exitcode == 0
    for _ in range(2):  # a lock that was given up can be taken again
        with exclusive(path, "taken"):
            pass


def test_a_lock_is_given_up_after_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="torn"), exclusive(tmp_path / "lock", "taken"):
        raise RuntimeError("torn")
    with exclusive(tmp_path / "lock", "taken") as descriptor:
        assert os.path.samestat(os.fstat(descriptor), (tmp_path / "lock").stat())
        os.write(descriptor, b"the holder may write to it")
    assert (tmp_path / "lock").read_text() == "the holder may write to it"


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"), exclusive(tmp_path / "lock", "taken"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_to_look_at_a_lock_makes_nothing_and_tells_who_holds_it(tmp_path):
    lock = tmp_path / "lock"
    assert not is_held(lock)
    assert not lock.exists()
    with exclusive(lock, "taken"):
        assert is_held(lock)
    assert not is_held(lock)


def test_one_who_only_looks_makes_nobody_give_up(tmp_path, monkeypatch):
    lock = tmp_path / "lock"
    lock.touch()
    looking = lock.open()
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr(storage.time, "sleep", lambda _: looking.close())  # it has seen what it wanted
    with exclusive(lock, "taken"):
        assert is_held(lock)
