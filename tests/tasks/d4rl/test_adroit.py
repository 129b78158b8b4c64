import importlib.util
from pathlib import Path

import numpy as np
import pytest
from shared_files import expert_weights

pytest.importorskip("gymnasium_robotics")

from drol.data.readers.npz import read_npz
from drol.tasks.base import Episode
from drol.tasks.d4rl.adroit import JUDGES
from drol.tasks.d4rl.environments import make_adroit
from drol.tasks.d4rl.loading import REFERENCE_RETURNS, normalised_score
from drol_reproduction.experts.expert import expert_of_weights

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "d4rl_parity.py"

SIZES = {"pen": (45, 24), "door": (39, 28), "hammer": (46, 26), "relocate": (39, 30)}
# Rewards of the eight actions `default_rng(0).uniform(-1, 1, (8, size))` after `reset(seed=0)`, with mujoco 3.11.0.
REWARDS = {
    "pen": [-0.444033, -0.445399, -0.447739, -0.451054, -0.453673, -0.439247, -0.412732, -0.378758],
    "door": [-0.294263, -0.295923, -0.303343, -0.321681, -0.297091, -0.294405, -0.308132, -0.286651],
    "hammer": [-1.459279, -1.523272, -1.551066, -1.625357, -1.569534, -1.535958, -1.570692, -1.521219],
    "relocate": [-0.022237, -0.023414, -0.02454, -0.026131, -0.027397, -0.028162, -0.028987, -0.029819],
}
REACHED_FOR = {"door": ("site", "S_handle"), "hammer": ("body", "Object"), "relocate": ("body", "Object")}


@pytest.fixture(scope="module", params=SIZES)
def hand_task(request):
    return request.param


@pytest.fixture(scope="module")
def environment(hand_task):
    environment = make_adroit(hand_task)
    yield environment
    environment.close()


def near_the_goal(hand_task, inner, share):
    """Joint values that bring the task a share of the way to its goal; at 1 every bonus is paid."""
    data, model = inner.data, inner.model
    if hand_task == "door":
        data.joint("door_hinge").qpos = 1.5 * share
    elif hand_task == "hammer":
        data.joint("nail_dir").qpos = model.joint("nail_dir").range[0] * (1 - share) + share * nail_goal(inner)
        data.joint("OBJTz").qpos = 0.2 * share
    elif hand_task == "relocate":
        offset = data.site("target").xpos - data.body("Object").xpos
        for axis, name in enumerate(("OBJTx", "OBJTy", "OBJTz")):
            data.joint(name).qpos = data.joint(name).qpos + share * offset[axis]
    inner.set_state(data.qpos.copy(), np.zeros_like(data.qvel))


def nail_goal(inner):
    """How far the nail goes in: to the end of its range that is nearer to the goal."""
    low, high = inner.model.joint("nail_dir").range
    return max(low, high, key=abs)


def test_rewards_are_those_of_gymnasium_robotics_with_the_reach_term_turned(hand_task, environment):
    """Its version 1.4.2 adds 0.1 times the distance to what the hand reaches for where D4RL subtracts it."""
    inner = environment.unwrapped
    generator = np.random.default_rng(1)
    seen = []
    for share in (0.0, 0.3, 0.75, 1.0):
        environment.reset(seed=int(100 * share))
        near_the_goal(hand_task, inner, share)
        for action in generator.uniform(-1, 1, (12, SIZES[hand_task][1])):
            _, theirs, _, _, info = inner.step(action)
            if hand_task != "pen":
                kind, name = REACHED_FOR[hand_task]
                there = getattr(inner.data, kind)(name).xpos
                theirs -= 0.2 * np.linalg.norm(inner.data.site("S_grasp").xpos - there)
            reward, at_goal, _ = JUDGES[hand_task](inner.data)
            assert reward == pytest.approx(theirs, rel=0, abs=1e-9)
            assert at_goal == bool(info["success"])
            seen.append(at_goal)
    assert not all(seen)
    if hand_task in ("door", "relocate"):
        assert any(seen)  # so that the bonuses were compared too


def test_short_episodes_have_the_recorded_rewards(hand_task, environment):
    observation, _ = environment.reset(seed=0)
    assert observation.shape == (SIZES[hand_task][0],)
    actions = np.random.default_rng(0).uniform(-1, 1, (8, SIZES[hand_task][1]))
    found = [environment.step(action)[1] for action in actions]
    np.testing.assert_allclose(found, REWARDS[hand_task], rtol=0, atol=2e-3)


def test_an_episode_follows_from_its_seed(environment):
    def play(seed):
        start, _ = environment.reset(seed=seed)
        return np.asarray([start, *(environment.step(np.zeros(environment.action_space.shape))[0] for _ in range(3))])

    first, other, again = play(3), play(4), play(3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_episodes_end_at_the_horizon_or_when_the_pen_drops(hand_task, environment):
    environment.reset(seed=0)
    action = np.zeros(environment.action_space.shape)
    length, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        _, _, terminated, truncated, _ = environment.step(action)
        length += 1
    dropped = environment.unwrapped.data.body("Object").xpos[2] < 0.075 if hand_task == "pen" else False
    assert terminated == dropped
    if not terminated:
        assert length == (100 if hand_task == "pen" else 200)


def test_a_dropped_pen_costs_five_and_ends_the_episode():
    environment = make_adroit("pen")
    environment.reset(seed=3)
    generator = np.random.default_rng(0)
    height = environment.unwrapped.data.body("Object").xpos  # [x, y, z], a view
    rewards, terminated, truncated = [], False, False
    while not terminated:
        assert not truncated, "the pen was not dropped"
        assert height[2] >= 0.075
        _, reward, terminated, truncated, info = environment.step(generator.uniform(-1, 1, 24))
        rewards.append(reward)
    assert height[2] < 0.075
    assert not info["success"]
    assert rewards[-1] == pytest.approx(rewards[-2] - 5, abs=0.5)
    environment.close()


def test_success_is_the_goal_held_for_long_enough(hand_task, environment, monkeypatch):
    held = 20 if hand_task == "pen" else 25
    at_goal = iter([True] * 10 + [False] * 3 + [True] * 30)
    monkeypatch.setattr(environment.env, "judge", lambda data: (0.0, next(at_goal), False))
    environment.reset(seed=0)
    successes = [environment.step(np.zeros(environment.action_space.shape))[4]["success"] for _ in range(43)]
    assert successes == [number > held + 3 for number in range(1, 44)]
    monkeypatch.undo()
    environment.reset(seed=0)
    assert not environment.step(np.zeros(environment.action_space.shape))[4]["success"]


def test_actions_beyond_the_box_are_clipped(environment):
    ends = []
    for size in (1.0, 5.0):
        environment.reset(seed=0)
        ends.append(environment.step(np.full(environment.action_space.shape, size))[0])
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    ("expert_task", "episodes", "lowest", "highest"),
    # Of 25 episodes, mean actions: 99.6 +- 12.8, 104.4 +- 0.1, 127.0 +- 0.4, 102.8 +- 2.5; see results/d4rl_parity.csv.
    [("pen", 6, 40, 160), ("door", 1, 95, 110), ("hammer", 1, 115, 135), ("relocate", 3, 60, 125)],
)
def test_experts_score_as_in_d4rl(expert_task, episodes, lowest, highest):
    expert = expert_of_weights(
        expert_weights(f"dapg_{expert_task}"), activation="tanh", output="none", input="observation"
    )
    environment = make_adroit(expert_task)
    played = []
    for seed in range(episodes):
        observation, _ = environment.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(np.clip(expert(observation), -1, 1))
            total, ended = total + reward, terminated or truncated
        played.append(Episode(seed, total, 0, False))
    environment.close()
    assert lowest < normalised_score(*REFERENCE_RETURNS[expert_task], played) < highest


def load_benchmark():
    specification = importlib.util.spec_from_file_location("d4rl_parity", BENCHMARK)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_replayed_demonstrations_of_the_door_have_their_recorded_rewards(tmp_path):
    """All 25, for 40 steps: afterwards contacts make small differences grow. results/d4rl_parity.csv has whole ones."""
    states = [f"initial_state/{name}" for name in ("qpos", "qvel", "door_body_pos")]
    recorded = read_npz(
        expert_weights("door_human_demos"), ("observations", "actions", "rewards", "terminals", *states)
    )
    starts = np.concatenate([[0], np.flatnonzero(recorded["terminals"])[:-1] + 1])
    rows = (starts[:, None] + np.arange(40)).ravel()
    few = {name: array if name in states else array[rows] for name, array in recorded.items()}
    few["terminals"] = np.arange(len(rows)) % 40 == 39
    np.savez(tmp_path / "few.npz", **few)
    replayed = load_benchmark().replay_door(tmp_path / "few.npz")
    np.testing.assert_array_equal(replayed["timeouts"], few["terminals"])
    assert not replayed["terminals"].any()
    assert np.abs(few["actions"]).max() > 1
    np.testing.assert_array_equal(replayed["actions"], np.clip(few["actions"], -1, 1))
    assert np.median(np.abs(replayed["observations"] - few["observations"])) < 0.01
    np.testing.assert_allclose(replayed["rewards"], few["rewards"], rtol=0, atol=0.02)
    reach = np.linalg.norm(few["observations"][:, 35:38], axis=-1)
    assert 0.2 * np.median(reach) > 0.05  # the effect of a wrong sign of the reach term
