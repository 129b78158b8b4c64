import threading

import pytest

from drol.training.background import Background


@pytest.fixture
def background():
    background = Background()
    yield background
    background.close()


def test_calls_happen_one_after_the_other_and_none_is_dropped(background):
    done, gate = [], threading.Event()

    def first():
        gate.wait()
        done.append(1)

    background.start(first)
    assert background.busy
    background.check()  # does not wait
    assert done == []
    threading.Timer(0.05, gate.set).start()
    background.start(done.append, 2)  # waits for the first
    assert done[0] == 1
    background.wait()
    assert done == [1, 2]
    assert not background.busy


@pytest.mark.parametrize("ask", ["check", "wait", "start"])
def test_what_a_call_raises_is_raised_once_where_it_is_asked_for(background, ask):
    def fail():
        raise ValueError("the disk is full")

    background.start(fail)
    background.thread.submit(int).result()  # now the first is over
    with pytest.raises(ValueError, match="the disk is full"):
        getattr(background, ask)(*([print] if ask == "start" else []))
    background.check()
    background.wait()


def test_a_wait_that_was_cut_short_can_be_taken_up_again(background, monkeypatch):
    gate = threading.Event()
    background.start(gate.wait)
    running = background.running
    with monkeypatch.context() as patch:
        patch.setattr(running, "result", interrupt)
        with pytest.raises(KeyboardInterrupt):
            background.wait()
    assert background.busy
    gate.set()
    background.wait()
    assert not background.busy


def interrupt():
    raise KeyboardInterrupt
