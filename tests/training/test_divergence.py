"""Training that diverges: nothing that is not finite is saved, and what happened is written down."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from toys import TINY, random_rows, tiny_config, tiny_task

from drol.checkpoints import ARRAYS, saved_steps, step_name
from drol.data.dataset import Dataset
from drol.data.on_disk import OnDiskDataset
from drol.runs.directory import RunDirectory
from drol.training.divergence import Diverged, all_finite, batch_rows, broken_arrays, broken_metrics
from drol.training.train import train
from drol.training.trainer import Trainer

POISONED = 60  # a row whose reward has an infinite square; about one batch in seven has it


def poisoned_task():
    rows = random_rows([50, 100, 50])
    rows["reward"][POISONED] = 3e38
    return tiny_task(None, train=Dataset.from_rows(**rows))


def run(path, task, **changes):
    return train(tiny_config(**({"steps": 100, "seeds": (1, 2)} | changes)), path, task, quiet=True)


def arrays(directory, step):
    return safetensors.numpy.load_file(directory.checkpoints / step_name(step) / ARRAYS)


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """A run with checkpoints at every step, and rows of metrics at none before it diverged; and its error."""
    path = tmp_path_factory.mktemp("diverged") / "run"
    with pytest.raises(Diverged) as caught:
        run(path, poisoned_task(), log_interval=100, checkpoint_interval=1, evaluation_interval=100)
    return RunDirectory(path), str(caught.value)


def test_no_checkpoint_is_written_that_is_not_finite_however_rarely_metrics_are_logged(diverged):
    directory, message = diverged
    match = re.match(r"\S+ of seed [12] is not finite at step (\d+); the last checkpoint, of step (\d+), is", message)
    assert match, message
    step = int(match[1])
    assert step > 2
    assert int(match[2]) == step - 1
    assert saved_steps(directory.checkpoints) == [step - 2, step - 1]
    for saved in (step - 2, step - 1):
        assert all(np.isfinite(array).all() for array in arrays(directory, saved).values())
    assert directory.read_metrics() == []


def test_what_happened_is_written_beside_the_checkpoints(diverged):
    directory, message = diverged
    content = json.loads(directory.divergence.read_text())
    step = content["last_update"]
    assert f"at step {step};" in message
    assert content["checkpoint"] == step - 1
    assert content["not_finite"]["critic_loss"] in ("inf", "nan")
    assert [each["update"] for each in content["batches"]] == [step - 1, step]
    assert POISONED in content["batches"][-1]["rows"]
    assert POISONED not in content["batches"][0]["rows"]
    assert all(len(each["rows"]) == TINY.batch_size for each in content["batches"])


def test_the_same_command_again_diverges_again_and_keeps_what_was_good(diverged):
    directory, message = diverged
    before = directory.divergence.read_text()
    with pytest.raises(Diverged) as caught:
        run(directory.path, poisoned_task(), log_interval=100, checkpoint_interval=1, evaluation_interval=100)
    assert str(caught.value) == message
    assert json.loads(directory.divergence.read_text())["not_finite"] == json.loads(before)["not_finite"]
    assert [path.name for path in (directory.forgotten / step_name(1)).iterdir()] == ["diverged.json"]


def test_a_new_run_starts_from_the_last_good_checkpoint(diverged, tmp_path):
    directory, _ = diverged
    last = saved_steps(directory.checkpoints)[-1]
    run(tmp_path / "slower", tiny_task(None), start_from=str(directory.path), steps=3)
    found, expected = arrays(RunDirectory(tmp_path / "slower"), 0), arrays(directory, last)
    for name in found:
        if name.startswith("states"):
            np.testing.assert_array_equal(found[name], expected[name])


def test_networks_that_broke_in_the_last_update_are_noticed_before_they_are_saved(tmp_path, monkeypatch):
    """The metrics of an update are those before its step, so they are still finite."""
    advance = Trainer.advance

    def advance_and_break(self, boundary):
        advance(self, boundary)
        if self.step == 6:
            states = self.placement.gather(self.states)
            broken = jax.tree.map(lambda leaf: leaf * jnp.nan if leaf.dtype == jnp.float32 else leaf, states)
            self.put(broken, self.placement.gather(self.totals))

    monkeypatch.setattr(Trainer, "advance", advance_and_break)
    with pytest.raises(Diverged, match=r"^policy/\S+ of seed 1 is not finite at step 6"):
        run(tmp_path / "policy", tiny_task(None))
    assert saved_steps(tmp_path / "policy" / "policies") == [0]
    with pytest.raises(Diverged, match=r"^states/\S+ of seed 1 is not finite at step 6"):
        run(tmp_path / "state", tiny_task(None), evaluation_interval=50)
    assert saved_steps(tmp_path / "state" / "checkpoints") == [0, 3]


def test_one_number_among_many_is_found():
    tree = {"a": jnp.ones((2, 3)), "count": jnp.asarray([1, 2]), "b": [jnp.ones(2)]}
    assert all_finite(tree)
    assert broken_arrays(tree) == {}
    tree["b"] = [jnp.asarray([1.0, jnp.inf])]
    assert not all_finite(tree)
    assert list(broken_arrays(tree)[1]) == ["b/0"]
    assert broken_metrics({"x": np.asarray([1, np.nan]), "y": np.asarray([1, 2])}) == {1: {"x": "nan"}}


def test_the_rows_of_a_batch_are_those_that_the_update_drew(tmp_path):
    rows = random_rows([5, 8, 4])
    in_memory = Dataset.from_rows(**rows)
    key = jax.random.key(7)
    found = batch_rows(in_memory, 16, key, [1, 2])
    for update, each in zip((1, 2), found, strict=True):
        batch_key, _ = jax.random.split(jax.random.fold_in(key, update))
        drawn = in_memory.sample(batch_key, 16)
        np.testing.assert_array_equal(rows["observation"][each], drawn.observation)
    on_disk = OnDiskDataset({name: np.asarray(getattr(in_memory, name)) for name in rows}, "")
    assert batch_rows(on_disk, 16, key, [1, 2]) == found
