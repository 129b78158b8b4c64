import json
import os

import pytest

from drol.runs import follow_records
from drol.runs.follow_records import FollowedFile
from drol.runs.records import MetricsRow


def text(step, **values):
    return json.dumps({"step": step, "seed": 0, **values}) + "\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def steps(file, budget=1 << 20):
    return [row.step for row in file.read(budget)[0]]


def test_each_look_reads_what_was_added(path):
    file = FollowedFile(path, MetricsRow)
    assert file.read(100) == ([], 0, False)  # it is not there yet
    path.write_text(text(1) + text(2))
    assert steps(file) == [1, 2]
    assert file.read(100) == ([], 0, False)
    with path.open("a") as opened:
        opened.write(text(3))
    assert steps(file) == [3]


def test_a_row_that_is_cut_off_waits_until_it_is_whole(path):
    file = FollowedFile(path, MetricsRow)
    path.write_text(text(1) + text(2)[:9])
    assert steps(file) == [1]
    assert steps(file) == []
    with path.open("a") as opened:
        opened.write(text(2)[9:])
    assert steps(file) == [2]
    assert file.bad == 0


def test_a_file_that_was_replaced_or_cut_is_read_again(path):
    file = FollowedFile(path, MetricsRow)
    path.write_text(text(1) + text(2))
    assert steps(file) == [1, 2]
    other = path.with_name("other")
    other.write_text(text(1) + text(5) + text(6))
    other.rename(path)  # as `storage.write_whole` does
    rows, _, anew = file.read(1000)
    assert ([row.step for row in rows], anew) == ([1, 5, 6], True)
    path.write_text(text(7))  # shorter, the same file
    rows, _, anew = file.read(1000)
    assert ([row.step for row in rows], anew) == ([7], True)
    path.unlink()
    assert file.read(1000) == ([], 0, True)
    assert file.read(1000) == ([], 0, False)


def test_no_look_reads_more_than_it_may(path):
    path.write_text("".join(text(step) for step in range(100)))
    file = FollowedFile(path, MetricsRow)
    found, looks = [], 0
    while not looks or file.behind:
        rows, used, _ = file.read(200)
        assert used <= 200
        found += [row.step for row in rows]
        looks += 1
    assert found == list(range(100))
    assert looks > 10


def test_lines_that_are_no_rows_are_counted_and_a_huge_one_is_passed_over(path, monkeypatch):
    monkeypatch.setattr(follow_records, "LARGEST_READ", 64)
    path.write_text(text(1) + "nonsense\n[]\n" + "x" * 1000 + "\n" + text(2))
    file, found = FollowedFile(path, MetricsRow), []
    for _ in range(40):
        found += steps(file)
    assert found == [1, 2]
    assert file.bad == 3


@pytest.mark.timeout(10)
def test_pipes_links_and_folders_are_not_read(tmp_path, path):
    (tmp_path / "secret").write_text(text(1))
    for make in (lambda: os.mkfifo(path), lambda: path.symlink_to(tmp_path / "secret"), path.mkdir):
        make()
        assert FollowedFile(path, MetricsRow).read(100) == ([], 0, False)
        path.rmdir() if path.is_dir() else path.unlink()
