"""Background evaluations give the results of foreground evaluations, after any interruption."""

import errno
import functools
import itertools
import os
import signal
import threading
import time

import hypothesis
import hypothesis.strategies as st
import pytest
from fake_environments import Walk
from run_folders import Killed, assert_same_run, comparable
from toys import tiny_config, tiny_task

from drol import checkpoints, storage
from drol.checkpoints import ARRAYS, saved_steps, step_name
from drol.errors import InputError
from drol.evaluation.episodes import Cancelled, Evaluator
from drol.evaluation.support import support_warning
from drol.runs import directory
from drol.runs.directory import RunDirectory
from drol.training import scheduled_evaluation
from drol.training.divergence import Diverged
from drol.training.scheduled_evaluation import ScheduledEvaluation
from drol.training.train import train
from drol.training.trainer import Trainer

ONLINE = {"steps": 4, "online_steps": 10, "evaluation_interval": 5}


def run(path, task=None, background=True, quiet=True, **changes):
    return train(tiny_config(**changes), path, task or tiny_task(), 2, quiet, background)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Train an uninterrupted run in the foreground."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, background=False)
    return path


@pytest.mark.parametrize("kind", ["with an environment", "by data alone", "online"])
def test_the_background_changes_no_number(tmp_path, caplog, kind):
    task = functools.partial(tiny_task, None if kind == "by data alone" else "healthy")
    changes = ONLINE if kind == "online" else {}
    expected = run(tmp_path / "foreground", task(), background=False, **changes)
    caplog.clear()
    outcome = run(tmp_path / "background", task(), quiet=False, **changes)
    assert_same_run(tmp_path / "background", tmp_path / "foreground")
    assert outcome.scores == expected.scores
    last = {
        "with an environment": "step 12: success",
        "by data alone": "step 12, seed 7: held-out",
        "online": "step 14: suc",
    }
    assert last[kind] in caplog.text


def test_without_episodes_no_environment_is_made_and_policies_and_metrics_are_the_same(whole, tmp_path):
    outcome = run(tmp_path / "run", tiny_task(make_environment=pytest.fail), evaluation_episodes=0)
    assert outcome.finished
    assert outcome.scores is None
    assert [(row.score, row.offline, row.episodes) for row in outcome.evaluations] == [(None, None, ())] * 6
    own, other = RunDirectory(tmp_path / "run"), RunDirectory(whole)
    assert saved_steps(own.policies) == saved_steps(other.policies) == [0, 6, 12]
    assert own.read_metrics() == other.read_metrics()
    assert [row.validation for row in outcome.evaluations] == [row.validation for row in other.read_evaluations()]


def test_training_goes_on_during_an_evaluation_and_waits_before_the_next(whole, tmp_path, monkeypatch):
    """While step 0 is evaluated, step 6 is reached; step 12 is not before that evaluation is over."""
    saved, events = threading.Event(), []
    evaluate, save = ScheduledEvaluation.evaluate, ScheduledEvaluation.save

    def evaluate_late(self, step):
        if step == 0:
            assert saved.wait(60)
            time.sleep(0.5)  # for a training that does not wait to reach step 12
        evaluate(self, step)
        events.append(("evaluated", step))

    def note_save(self, step, *arguments):
        save(self, step, *arguments)
        events.append(("saved", step))
        if step == 6:
            saved.set()

    monkeypatch.setattr(ScheduledEvaluation, "evaluate", evaluate_late)
    monkeypatch.setattr(ScheduledEvaluation, "save", note_save)
    run(tmp_path / "run")
    order = [("saved", 0), ("saved", 6), ("evaluated", 0), ("saved", 12), ("evaluated", 12)]
    assert [event for event in events if event != ("evaluated", 6)] == order
    assert events.index(("evaluated", 0)) < events.index(("evaluated", 6)) < events.index(("evaluated", 12))
    assert_same_run(tmp_path / "run", whole)


def die_at_write(patch, number):
    """Let the writes of all threads fail from this one on, as if the process had been killed there."""
    count = itertools.count()

    def dying(function):
        def wrapped(*arguments):
            if next(count) >= number:
                raise Killed
            return function(*arguments)

        return wrapped

    for owner, name in ((checkpoints, "write_synced"), (storage, "write_synced"), (directory, "append_row")):
        patch.setattr(owner, name, dying(getattr(owner, name)))


@hypothesis.given(writes=st.integers(0, 26), first=st.booleans(), second=st.booleans())
@hypothesis.settings(max_examples=12, deadline=None)
def test_a_run_killed_at_any_write_ends_as_if_it_had_not_been(whole, tmp_path_factory, writes, first, second):
    path = tmp_path_factory.mktemp("killed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        die_at_write(patch, writes)
        with pytest.raises(Killed):
            run(path, background=first)
    run(path, background=second)
    assert_same_run(path, whole)


@pytest.mark.parametrize("background", [True, False])
def test_an_evaluation_older_than_the_checkpoint_is_made_after_a_kill(whole, tmp_path, monkeypatch, background):
    path = tmp_path / "run"
    evaluate, save, killed = ScheduledEvaluation.evaluate, Trainer.save, threading.Event()

    def evaluate_until_killed(self, step):
        if step == 6:
            assert killed.wait(60)
        evaluate(self, step)

    def save_and_die(self):
        save(self)
        if self.step == 9:
            self.evaluation.evaluator.cancel()
            killed.set()
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ScheduledEvaluation, "evaluate", evaluate_until_killed)
        patch.setattr(Trainer, "save", save_and_die)
        with pytest.raises(Killed):
            run(path)
    assert saved_steps(path / "checkpoints")[-1] == 9
    assert {row.step for row in RunDirectory(path).read_evaluations()} == {0}
    run(path, background=background)
    assert_same_run(path, whole)


def test_only_the_seeds_that_lack_a_row_are_evaluated_again(whole, tmp_path, monkeypatch):
    path, log_evaluation, played = tmp_path / "run", RunDirectory.log_evaluation, []

    def log_and_die(self, row):
        log_evaluation(self, row)
        if (row.step, row.seed) == (6, 0):
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "log_evaluation", log_and_die)
        with pytest.raises(Killed):
            run(path, background=False)
    play = ScheduledEvaluation.play
    monkeypatch.setattr(
        ScheduledEvaluation,
        "play",
        lambda self, step, policy, seed: played.append((step, seed)) or play(self, step, policy, seed),
    )
    run(path)
    assert played == [(6, 7), (12, 0), (12, 7)]
    assert_same_run(path, whole)


def test_an_error_in_the_background_ends_the_run_and_can_be_mended(whole, tmp_path, monkeypatch):
    log_evaluation = RunDirectory.log_evaluation

    def full(self, row):
        if row.step == 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        log_evaluation(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "log_evaluation", full)
        with pytest.raises(OSError, match="No space left on device"):
            run(tmp_path / "run")
    run(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole)


def test_an_error_of_the_training_waits_for_the_evaluation_and_comes_first(tmp_path, monkeypatch, caplog):
    evaluate, failing = ScheduledEvaluation.evaluate, threading.Event()

    def evaluate_late(self, step):
        assert failing.wait(60)
        evaluate(self, step)
        raise ValueError("no more room")

    def fail(self):
        failing.set()
        raise Diverged("actor_loss is not finite")

    monkeypatch.setattr(ScheduledEvaluation, "evaluate", evaluate_late)
    monkeypatch.setattr(Trainer, "log", fail)
    with pytest.raises(Diverged):
        run(tmp_path / "run", quiet=False)
    assert [row.step for row in RunDirectory(tmp_path / "run").read_evaluations()] == [0, 0]
    assert "an evaluation failed too: no more room" in caplog.text


@pytest.mark.parametrize(
    ("kind", "background", "step"),
    [("offline", False, 6), ("offline", True, 6), ("online", True, 5), ("last", False, 12)],
)
def test_a_signal_in_an_evaluation_does_not_wait_for_its_end(
    whole, tmp_path, monkeypatch, caplog, kind, background, step
):
    """The environment of this evaluation hangs; its time would be up after two minutes."""
    path, play, changes = tmp_path / "run", ScheduledEvaluation.play, ONLINE if kind == "online" else {}
    expected = whole
    if kind == "online":
        expected = tmp_path / "expected"
        run(expected, background=False, **changes)

    def hang(self, at, policy, seed):
        if (at, seed) == (step, 7):  # the row of seed 0 is written by then
            self.evaluator.run = lambda *_: wait_until_cancelled(self.evaluator)
            os.kill(os.getpid(), signal.SIGUSR1)  # this is not the main thread, which handles it
        return play(self, at, policy, seed)

    with monkeypatch.context() as patch:
        patch.setattr(ScheduledEvaluation, "play", hang)
        outcome = run(path, background=background, quiet=False, **changes)
    assert outcome.stopped_by == signal.SIGUSR1
    rows = [(row.step, row.seed) for row in outcome.evaluations]
    assert (step, 0) in rows
    assert (step, 7) not in rows
    assert saved_steps(path / "checkpoints")[-1] == outcome.step >= step
    assert "waiting for the last evaluation" not in caplog.text
    run(path, background=not background, **changes)
    assert_same_run(path, expected)


def wait_until_cancelled(evaluator):
    deadline = time.monotonic() + 60
    while not evaluator.cancelled and time.monotonic() < deadline:
        time.sleep(0.01)
    raise Cancelled


def test_an_interrupt_does_not_wait_for_an_environment_that_hangs(whole, tmp_path, monkeypatch):
    """Its time would be up only after two minutes."""
    processes = []
    stop = Evaluator.stop

    def note_and_stop(self):
        processes.extend(process.worker[0] for process in self.processes if process.worker)
        stop(self)

    def interrupt(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "stop", note_and_stop)
        patch.setattr(Trainer, "log", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", tiny_task(make_environment=functools.partial(Walk, "hangs", 0)))
    assert not any(process.is_alive() for process in processes)
    run(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole)


def test_a_damaged_policy_is_named_with_what_to_do(whole, tmp_path):
    path = tmp_path / "run"
    run(path, background=False, steps=3)
    (path / "evaluations.jsonl").write_text("")
    arrays = path / "policies" / step_name(3) / ARRAYS
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"000000003 cannot be used: .* remove that folder to continue"):
        run(path, steps=3)


def test_validation_metrics_come_from_the_state_that_was_saved(whole):
    rows = comparable(whole)["evaluations.jsonl"]
    assert all(row["validation"]["candidate_divergence"] > 0 for row in rows)
    assert len({row["validation"]["candidate_divergence"] for row in rows}) == len(rows)


def test_a_policy_that_leaves_the_data_is_reported_from_half_of_the_updates_on(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "drol")
    figures = {"single_sample_error": 1.0, "outside_support": 0.87}
    monkeypatch.setattr(scheduled_evaluation, "offline_scores", lambda *_: figures)
    run(tmp_path / "run", tiny_task(None), False, False, seeds=(0,), evaluation_interval=4)
    printed = caplog.text
    assert "step 4: held-out error 1.000, 87% of actions outside the data (5% of the data's own)" in printed
    assert support_warning(0.87, "the policy of step 8") in printed
    assert "the policy of step 4 lie" not in printed
