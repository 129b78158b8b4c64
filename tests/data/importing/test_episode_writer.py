import numpy as np
import pytest

from drol.data.dataset import Dataset
from drol.data.importing.episode_writer import EpisodeWriter
from drol.data.store.stored import StoredDataset
from drol.errors import InputError


def episode(length, seed=0):
    generator = np.random.default_rng(seed)
    return (
        generator.normal(size=(length + 1, 3)),
        generator.uniform(-0.9, 0.9, (length, 2)),
        generator.normal(size=length),
    )


def test_episodes_become_a_dataset(tmp_path):
    with EpisodeWriter("mine", tmp_path, validation=0) as writer:
        writer.add(*episode(5, 0), terminal=True)
        writer.add(*episode(3, 1), terminal=False)
        assert list(tmp_path.glob("mine")) == []  # not before it is whole
    stored = StoredDataset.open("mine", tmp_path)
    stored.verify("train")
    arrays = stored.arrays("train")
    assert arrays["last"].tolist() == [False] * 5 + [True] + [False] * 3 + [True]
    assert arrays["continues"][~arrays["last"]].tolist() == [1, 1, 1, 1, 0, 1, 1, 1]
    np.testing.assert_array_equal(arrays["observation"][:6], episode(5, 0)[0].astype(np.float32))
    assert stored.manifest["counts"]["terminals"] == 1
    Dataset.from_rows(**{name: np.array(array) for name, array in arrays.items()})


def test_a_box_is_kept(tmp_path):
    observation, action, reward = episode(4)
    with EpisodeWriter("mine", tmp_path, action_low=[-10, 0], action_high=[10, 100], validation=0) as writer:
        writer.add(observation, action * [10, 50] + [0, 50], reward, terminal=True)
    stored = StoredDataset.open("mine", tmp_path)
    np.testing.assert_allclose(stored.arrays("train")["action"][:4], action, atol=1e-5)
    assert stored.box.high == (10.0, 100.0)


def test_an_exception_leaves_nothing(tmp_path):
    root = tmp_path / "root"

    def record():
        with EpisodeWriter("mine", root) as writer:
            writer.add(*episode(4), terminal=True)
            raise RuntimeError("the robot was unplugged")

    with pytest.raises(RuntimeError, match="unplugged"):
        record()
    assert not root.exists()
    with pytest.raises(InputError, match="holds no step"), EpisodeWriter("mine", root):
        pass
    assert not root.exists()


OBSERVATION, ACTION, REWARD = episode(4)
MISTAKES = {
    "no final observation": ((OBSERVATION[:-1], ACTION, REWARD), "observation has 4 rows; 4 actions need 5"),
    "a reward too few": ((OBSERVATION, ACTION, REWARD[:-1]), "reward has 3 rows; 4 actions need 4"),
    "one reward": ((OBSERVATION, ACTION, 1.0), "reward has no rows; 4 actions need 4"),
    "nothing done": ((OBSERVATION[:1], ACTION[:0], REWARD[:0]), "episode 0 has no action"),
    "ragged": (([[1], [1, 2]], ACTION, REWARD), "the steps have different shapes"),
    "outside": ((OBSERVATION, ACTION * 9, REWARD), "episode 0: action reaches"),
    "NaN": ((OBSERVATION * np.nan, ACTION, REWARD), "episode 0: observation has values that are NaN"),
}


@pytest.mark.parametrize(("arrays", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(tmp_path, arrays, words):
    with pytest.raises(InputError, match=words), EpisodeWriter("mine", tmp_path) as writer:
        writer.add(*arrays, terminal=True)
    assert list(tmp_path.iterdir()) == []


def test_half_a_box_is_refused(tmp_path):
    with pytest.raises(InputError, match="only one of action_low and action_high"):
        EpisodeWriter("mine", tmp_path, action_low=[0])
