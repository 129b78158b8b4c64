"""A full disk ends a run with the path and advice; existing files stay, and the same call resumes."""

import errno

import pytest
from full_disk import fill, leftovers, small_disk
from run_folders import assert_same_run
from toys import tiny_config, tiny_task

from drol.runs.directory import RunDirectory
from drol.storage import describe_fault
from drol.training.scheduled_evaluation import ScheduledEvaluation
from drol.training.train import train
from drol.training.trainer import Trainer


def run(path):
    return train(tiny_config(), path, tiny_task(), processes=2, quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path)
    return path


MOMENTS = {
    "a policy": (ScheduledEvaluation, "save", lambda self, step, *_: step == 6, "policies/000000006"),
    "a row": (Trainer, "log", lambda self: self.step == 4, "metrics.jsonl"),
    "a trajectory": (
        RunDirectory,
        "save_trajectories",
        lambda self, step, *_: step == 6,
        "trajectories/000000006-seed",
    ),
    "the last checkpoint": (Trainer, "save", lambda self: self.step == 12, "checkpoints/000000012"),
    "the configuration": (RunDirectory, "write_config", lambda *_: True, "config.json"),
}


@pytest.mark.parametrize(("owner", "name", "when", "named"), MOMENTS.values(), ids=MOMENTS)
def test_a_disk_that_is_full_is_named_with_what_to_do_and_nothing_is_lost(
    whole, tmp_path, monkeypatch, owner, name, when, named
):
    function = getattr(owner, name)
    with small_disk(tmp_path / "disk") as disk:
        path = disk / "run"

        def fill_and_call(*arguments):
            if when(*arguments):
                fill(disk)
            return function(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fill_and_call)
            with pytest.raises(OSError, match="No space left") as caught:
                run(path)
        assert caught.value.errno == errno.ENOSPC
        assert str(caught.value.filename).startswith(str(path / named))
        assert describe_fault(caught.value).endswith("; make room there, then give the same command again")
        assert leftovers(path) == []
        (disk / "ballast").unlink()
        assert run(path).step == 12
        assert_same_run(path, whole)
