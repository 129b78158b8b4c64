"""What people see of long work: a bar in a terminal, lines elsewhere, nothing when it is to be quiet."""

import sys

import pytest

from drol import progress as progress_module
from drol.progress import Progress, duration


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (45.4, "45 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599, "59 min 59 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_time_is_said_as_people_say_it(seconds, words):
    assert duration(seconds) == words


def test_without_a_terminal_there_is_a_line_now_and_then(clock, capsys):
    with Progress("importing", "MB", scale=1e6) as progress:
        for done in range(0, 101, 10):
            progress.show(done * 1e6, 100e6, "reading data.npz")
            clock.now += 4
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "importing: 30.0/100.0 MB, 2.5/s, 28 s left, reading data.npz",
        "importing: 60.0/100.0 MB, 2.5/s, 16 s left, reading data.npz",
        "importing: 90.0/100.0 MB, 2.5/s, 4 s left, reading data.npz",
        "importing: 100.0/100.0 MB, 2.5/s, 0 s left, reading data.npz",
    ]


def test_quick_work_prints_its_end_only(clock, capsys):
    with Progress("training", "updates") as progress:
        for done in (0, 500, 1000):
            progress.show(done, 1000)
            clock.now += 0.5
    assert capsys.readouterr().err == "training: 1,000/1,000 updates, 1,000/s, 0 s left\n"


def test_work_that_was_done_before_is_not_part_of_the_rate(clock):
    progress = Progress("training", "updates")
    assert progress.rate == 0
    progress.show(1000, 3000)
    assert progress.rate == 0  # the first call only starts the clock
    clock.now += 10
    progress.show(2000, 3000)
    assert progress.rate == 100
    assert progress.text("") == "2,000/3,000 updates, 100/s, 10 s left"


def test_work_that_begins_again_has_no_negative_rate(clock):
    progress = Progress("downloading", "MB", scale=1e6)
    progress.show(50e6, 100e6)
    clock.now += 10
    progress.show(0, 100e6)
    assert progress.rate == 0
    clock.now += 10
    progress.show(20e6, 100e6)
    assert progress.rate == 1e6


def test_the_time_may_be_that_of_a_part_of_the_work(clock):
    progress = Progress("training", "updates")
    progress.show(0, 300)
    for done in (100, 200):
        clock.now += 60  # most of it was an evaluation
        progress.show(done, 300, seconds=5)
    assert progress.rate == 20


def test_where_nobody_knows_the_total_there_is_no_time_left(clock):
    progress = Progress("collecting", "episodes")
    progress.show(0, None)
    clock.now += 2
    progress.show(6, None, "a maze")
    assert progress.text("a maze") == "6 episodes, 3.0/s, a maze"


def test_a_terminal_shows_a_bar_and_notes_stay(terminal, capsys):
    with Progress("importing", "MB", scale=1e6) as progress:
        assert progress.bar is not None
        progress.show(0, 2e6, "one.npz")
        progress.show(2e6, 2e6, "two.npz")
        print("a line that stays", file=sys.stderr)  # as messages are printed
    printed = capsys.readouterr().err
    assert "importing" in printed
    assert "2.0/2.0 MB" in printed
    assert "two.npz" in printed
    assert "a line that stays" in printed


@pytest.mark.parametrize("where", ["terminal", "file"])
def test_quiet_shows_nothing(request, where, clock, capsys):
    if where == "terminal":
        request.getfixturevalue("terminal")
    with Progress("training", "updates", quiet=True) as progress:
        progress.show(0, 10)
        clock.now += 100
        progress.show(10, 10)
    printed = capsys.readouterr()
    assert printed.err == printed.out == ""
    assert progress.rate == 0.1


@pytest.mark.parametrize("where", ["terminal", "file"])
def test_names_with_brackets_are_printed_as_they_are(request, where, clock, capsys):
    if where == "terminal":
        request.getfixturevalue("terminal")
    with Progress("reading", "MB") as progress:
        progress.show(0, 2, "[red]file[/].npz")
        clock.now += 1
        progress.show(2, 2, "[red]file[/].npz")
    assert "[red]file[/].npz" in capsys.readouterr().err
