import numpy as np
import pytest
from fake_environments import Stripes, Walk

from drol.data.dataset import Dataset
from drol.tasks.frames import stack_frames


def play(environment, seed):
    """All observations of an episode."""
    observation, _ = environment.reset(seed=seed)
    seen, done = [observation], False
    while not done:
        observation, _, _, done, _ = environment.step(np.ones(2))
        seen.append(observation)
    return np.stack(seen)


@pytest.mark.parametrize("count", [2, 3, 9])
def test_an_environment_shows_what_the_dataset_stacks(count):
    seeds = (3, 4)
    frames = [play(Stripes(), seed) for seed in seeds]
    rows = sum(map(len, frames))
    dataset = Dataset.from_rows(
        observation=np.concatenate(frames),
        action=np.zeros((rows, 2)),
        reward=np.zeros(rows),
        continues=np.ones(rows),
        last=np.concatenate([np.arange(len(each)) == len(each) - 1 for each in frames]),
        frame_stack=count,
    )
    taken = dataset.take(np.arange(dataset.size))
    environment = stack_frames(Stripes(), count)  # one for both episodes, so that the first leaves nothing behind
    seen = [play(environment, seed) for seed in seeds]
    assert seen[0].dtype == np.uint8
    assert seen[0].shape[1:] == dataset.spec.observation_shape
    np.testing.assert_array_equal(taken.observation, np.concatenate([each[:-1] for each in seen]))
    np.testing.assert_array_equal(taken.next_observation, np.concatenate([each[1:] for each in seen]))


def test_a_stack_of_one_is_the_environment_itself():
    environment = Walk()
    assert stack_frames(environment, 1) is environment


def test_all_else_is_that_of_the_environment():
    inner = Stripes(length=3)
    environment = stack_frames(inner, 2)
    assert environment.action_space is inner.action_space
    environment.reset(seed=0)
    answers = [environment.step(np.asarray([inner.direction, 0]))[1:] for _ in range(3)]
    assert answers == [(1.0, False, False, {"success": True})] * 2 + [(1.0, False, True, {"success": True})]
    with pytest.raises(AttributeError, match="no_such_thing"):
        environment.no_such_thing  # noqa: B018
