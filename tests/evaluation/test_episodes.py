import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from fake_environments import Stripes, Walk, short_pointmaze
from toys import SPEC, TINY, random_state

from drol.data.standardisation import Standardisation
from drol.evaluation.episodes import Cancelled, Evaluator, suitable_processes
from drol.policy import Policy
from drol.tasks.frames import stack_frames
from drol.transition import Spec

EPISODES, FIRST_SEED = 7, 3


@pytest.fixture(scope="module")
def policy():
    return Policy(TINY, random_state(TINY, seed=1).policy, Standardisation.identity(SPEC))


def play(policy, processes, fault="healthy", seed=-1, shared_by=0, **options):
    """Play the episodes; with `shared_by`, that many processes share the environments."""
    make = functools.partial(Walk, fault, seed)
    with Evaluator(make, processes, keep_positions=True, share=shared_by > 0) as evaluator:
        evaluator.cores = shared_by or evaluator.cores
        return evaluator.run(policy, EPISODES, FIRST_SEED, **options)


def assert_same(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.to_dict() == theirs.to_dict()
        np.testing.assert_array_equal(ours.positions, theirs.positions)


@pytest.fixture(scope="module")
def healthy(policy):
    """The episodes of an environment that does not break."""
    return play(policy, 2)


def test_episodes_are_as_many_as_asked_for_and_in_the_order_of_their_seeds(healthy):
    assert [episode.seed for episode in healthy] == list(range(FIRST_SEED, FIRST_SEED + EPISODES))
    assert [episode.length for episode in healthy] == [
        6 + seed % 4 for seed in range(FIRST_SEED, FIRST_SEED + EPISODES)
    ]
    assert all(episode.failure is None for episode in healthy)
    assert {episode.success for episode in healthy} == {True, False}
    assert len({episode.total_reward for episode in healthy}) == EPISODES


def test_an_episode_is_the_one_that_its_seed_gives_when_played_by_hand(policy, healthy):
    for expected in healthy[:3]:
        seed, environment = expected.seed, Walk()
        environment.action_space.seed(seed)
        observation, _ = environment.reset(seed=seed)
        positions, total, done, step = [observation[:2]], 0.0, False, 0
        while not done:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), seed), step)
            observation, reward, _, done, info = environment.step(np.asarray(policy.draw(observation, key)))
            positions.append(observation[:2])
            total += reward
            step += 1
        assert (expected.length, expected.success) == (step, info["success"])
        assert expected.total_reward == pytest.approx(total, rel=1e-4)
        np.testing.assert_allclose(expected.positions, positions, rtol=0, atol=1e-4)


@pytest.mark.parametrize("processes", [1, 5])
def test_the_number_of_processes_changes_no_episode(policy, healthy, processes):
    assert_same(play(policy, processes), healthy)


@pytest.mark.parametrize(("environments", "processes"), [(2, 1), (5, 2), (None, 1), (None, 3)])
def test_environments_that_share_a_process_change_no_episode(policy, healthy, environments, processes):
    assert_same(play(policy, environments, shared_by=processes), healthy)


def test_an_environment_that_draws_from_the_global_generator_is_repeated_too(policy, healthy):
    expected = play(policy, 1, "global generator")
    assert expected[0].total_reward != healthy[0].total_reward
    for processes in (2, 5):
        assert_same(play(policy, processes, "global generator"), expected)


def test_processes_are_kept_and_an_episode_does_not_depend_on_those_before_it(policy, healthy):
    with Evaluator(Walk, 2, keep_positions=True) as evaluator:
        evaluator.run(policy, 3, 100)
        running = [process.worker[0].pid for process in evaluator.processes]
        assert_same(evaluator.run(policy, EPISODES, FIRST_SEED), healthy)
        assert [process.worker[0].pid for process in evaluator.processes] == running
        processes = [process.worker[0] for process in evaluator.processes]
    assert not any(process.is_alive() for process in processes)


def test_positions_are_kept_only_where_asked_for(policy):
    with Evaluator(Walk, 1) as evaluator:
        assert evaluator.run(policy, 1)[0].positions is None


def test_best_of_reaches_the_policy(policy, healthy):
    assert play(policy, 2, best_of=8)[0].total_reward != healthy[0].total_reward


@pytest.mark.parametrize(("processes", "shared_by"), [(1, 0), (3, 0), (3, 1), (5, 2)])
@pytest.mark.parametrize(
    ("fault", "reason", "length"),
    [
        ("raises in reset", "RuntimeError: no such maze", 0),
        ("raises in step", "ValueError: the simulation is unstable", 2),
        ("exits", "the environment's process ended with exit code 3", 2),
    ],
)
def test_an_episode_that_breaks_is_marked_and_the_others_are_as_before(
    policy, healthy, processes, shared_by, fault, reason, length
):
    broken = FIRST_SEED + 2
    found = play(policy, processes, fault, broken, shared_by)
    assert found[2].to_dict() == {
        "seed": broken,
        "return": pytest.approx(found[2].total_reward),
        "length": length,
        "success": False,
        "failure": reason,
    }
    assert_same(found[:2] + found[3:], healthy[:2] + healthy[3:])


def give_time(evaluator, seconds):
    for process in evaluator.processes:
        process.timeout = seconds


@pytest.mark.parametrize("share", [False, True])
def test_an_environment_that_hangs_is_given_up(policy, healthy, share):
    last = FIRST_SEED + EPISODES - 1
    with Evaluator(functools.partial(Walk, "hangs", last), 2, keep_positions=True, share=share) as evaluator:
        evaluator.cores = 1
        evaluator.run(policy, 4, 100)  # starts the processes, which may take longer than the time below
        give_time(evaluator, 1.0)
        found = evaluator.run(policy, EPISODES, FIRST_SEED)
        assert found[-1].failure == "no answer from the environment within 1 s"
        assert (found[-1].length, found[-1].success) == (2, False)
        assert_same(found[:-1], healthy[:-1])
        give_time(evaluator, 60.0)
        assert_same(evaluator.run(policy, EPISODES - 1, FIRST_SEED), healthy[:-1])  # a new process took its place


def test_an_evaluation_in_another_thread_can_be_cancelled_while_an_environment_hangs(policy):
    with Evaluator(functools.partial(Walk, "hangs", FIRST_SEED), 1) as evaluator, ThreadPoolExecutor(1) as thread:
        running = thread.submit(evaluator.run, policy, EPISODES, FIRST_SEED)
        evaluator.cancel()
        with pytest.raises(Cancelled):
            running.result()


def test_ctrl_c_does_not_break_an_episode(policy, healthy):
    """It reaches every process of the terminal; when to stop is for the main one to say."""
    assert_same(play(policy, 2, "is interrupted", FIRST_SEED + 2), healthy)


def test_an_environment_that_cannot_be_made_fails_every_episode(policy):
    with Evaluator(functools.partial(Walk, no_such_option=1), 2) as evaluator:
        found = evaluator.run(policy, 3)
    assert [episode.seed for episode in found] == [0, 1, 2]
    assert all("no_such_option" in episode.failure for episode in found)


def test_more_processes_than_rows_of_a_batch_are_not_used():
    assert len(Evaluator(Walk, 100).processes) == 16
    assert len(Evaluator(Walk, 1).processes) == 1


def test_without_a_number_as_many_processes_start_as_suit_the_episodes(policy):
    with Evaluator(Walk) as evaluator:
        evaluator.cores = 1
        evaluator.run(policy, 9)
        assert sum(process.worker is not None for process in evaluator.processes) == 9
        evaluator.run(policy, 3)
        assert sum(process.worker is not None for process in evaluator.processes) == 9


@pytest.mark.parametrize(
    ("episodes", "cores", "count"), [(50, 1, 10), (50, 2, 10), (50, 4, 16), (50, 64, 16), (16, 2, 8), (37, 2, 13)]
)
def test_the_last_round_of_episodes_leaves_few_processes_without_one(episodes, cores, count):
    assert suitable_processes(episodes, cores) == count


@pytest.mark.parametrize(
    ("episodes", "cores", "sizes"),
    [(50, 1, [13]), (50, 2, [7, 7]), (50, 4, [4] * 4), (3, 2, [2, 1]), (50, 64, [1] * 16)],
)
def test_shared_environments_are_divided_evenly_among_the_cores(episodes, cores, sizes):
    evaluator = Evaluator(Walk, share=True)
    evaluator.cores = cores
    assert [worker.environments for worker in evaluator.assign(episodes)] == sizes


def test_episodes_of_ogbench_do_not_depend_on_the_number_of_processes():
    spec = Spec((2,), 2)
    policy = Policy(TINY, random_state(TINY, spec=spec).policy, Standardisation.identity(spec))
    played = []
    for processes, share in ((1, False), (3, False), (3, True)):
        with Evaluator(short_pointmaze, processes, keep_positions=True, share=share) as evaluator:
            evaluator.cores = 2
            played.append(evaluator.run(policy, 4))
    assert_same(played[1], played[0])
    assert_same(played[2], played[0])
    first = played[0]
    assert [episode.length for episode in first] == [120] * 4
    assert [episode.failure for episode in first] == [None] * 4
    assert len({tuple(episode.positions[-1]) for episode in first}) == 4
    assert np.abs(first[0].positions[-1] - first[0].positions[0]).max() > 0.1


def stacked_stripes():
    return stack_frames(Stripes(), 3)


def test_an_environment_of_pictures_is_played_with_stacked_frames():
    spec = Spec((8, 8, 3), 2)
    policy = Policy(TINY, random_state(TINY, spec=spec).policy, Standardisation.identity(spec))
    with Evaluator(stacked_stripes, 2) as evaluator:
        found = evaluator.run(policy, 4, FIRST_SEED)
    assert [episode.length for episode in found] == [6] * 4
    for expected in found[:2]:
        seed, environment, frames = expected.seed, Stripes(), []
        picture, _ = environment.reset(seed=seed)
        total, done, step = 0.0, False, 0
        while not done:
            frames = [*(frames or [picture] * 2), picture][-3:]
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), seed), step)
            action = np.asarray(policy.draw(np.concatenate(frames, -1), key))
            picture, reward, _, done, info = environment.step(action)
            total += reward
            step += 1
        assert (expected.length, expected.success) == (step, info["success"])
        assert expected.total_reward == total
