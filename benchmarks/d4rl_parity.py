"""Score D4RL's own policies in our environments. Run: python benchmarks/d4rl_parity.py WEIGHTS --csv FILE

WEIGHTS is a folder with dapg_{pen,door,hammer,relocate}.npz, door_human_demos.npz and d4rl_ant_walker.npz. In D4RL the
experts score about 100, and replayed demonstrations reach their recorded returns.
"""

import argparse
import csv
import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.npz import read_npz
from drol.tasks.base import Episode
from drol.tasks.d4rl.environments import MAPS, make_adroit, make_antmaze
from drol.tasks.d4rl.hdf5_rows import RowRecorder
from drol.tasks.d4rl.loading import REFERENCE_RETURNS, normalised_score
from drol_reproduction.collecting.d4rl import Guide, action_towards
from drol_reproduction.experts.expert import Expert, expert_of_weights


def expert_episodes(hand_task: str, expert: Expert, episodes: int, drawn: bool) -> list[Episode]:
    """Play episodes of a hand task with an expert."""
    environment = make_adroit(hand_task)
    played = []
    for seed in range(episodes):
        generator = np.random.default_rng(seed)
        observation, _ = environment.reset(seed=seed)
        total, length, ended, success = 0.0, 0, False, False
        while not ended:
            action = np.clip(expert.draw(observation, generator) if drawn else expert(observation), -1, 1)
            observation, reward, terminated, truncated, info = environment.step(action)
            total, length, ended, success = total + reward, length + 1, terminated or truncated, info["success"]
        played.append(Episode(seed, total, length, success))
    environment.close()
    return played


def maze_episodes(maze: str, walker: Expert, episodes: int) -> list[Episode]:
    """Play episodes of an antmaze with a walker that follows a shortest path to the goal."""
    environment = make_antmaze(maze)
    played = []
    for seed in range(episodes):
        generator = np.random.default_rng(seed)
        observation, _ = environment.reset(seed=seed)
        guide = Guide(MAPS[maze], environment.env.goal)
        total, length, ended = 0.0, 0, False
        while not ended:
            action = action_towards(walker, observation, guide.target(observation[:2], generator), generator)
            observation, reward, terminated, truncated, _ = environment.step(action)
            total, length, ended = total + reward, length + 1, terminated or truncated
        played.append(Episode(seed, total, length, total > 0))
    environment.close()
    return played


def replay_door(demonstrations: Path) -> dict[str, np.ndarray]:
    """Replay demonstrations of the door and return the rows of `door-human-v1`.

    Each replay starts from the demonstrated initial state and takes the demonstrated actions, clipped.
    """
    states = [f"initial_state/{name}" for name in ("qpos", "qvel", "door_body_pos")]
    recorded = read_npz(demonstrations, ("actions", "terminals", *states))
    environment = make_adroit("door").env  # without the time limit, because demonstrations are longer
    rows = RowRecorder()
    starts = np.flatnonzero(np.concatenate([[True], recorded["terminals"][:-1]]))
    for number, (first, end) in enumerate(zip(starts, [*starts[1:], len(recorded["actions"])], strict=True)):
        state = {name.split("/")[1]: recorded[name][number] for name in states}
        observation, _ = environment.reset(seed=0, options={"initial_state_dict": state})
        for row in range(first, end):
            action = np.clip(recorded["actions"][row], -1, 1)
            following, reward, _, _, _ = environment.step(action)
            rows.add(observation, action, reward, False, row == end - 1)
            observation = following
    environment.close()
    return rows.arrays()


def summarise(task: str, policy: str, quantity: str, values: Any, episodes: list[Episode]) -> dict[str, Any]:
    deviation = np.std(values, ddof=1) if len(values) > 1 else float("nan")
    return {
        "task": task,
        "policy": policy,
        "episodes": len(values),
        "quantity": quantity,
        "mean": round(float(np.mean(values)), 2),
        "median": round(float(np.median(values)), 2),
        "standard_error": round(float(deviation / len(values) ** 0.5), 2),
        "success": round(float(np.mean([episode.success for episode in episodes])), 2) if episodes else "",
        "mean_length": round(float(np.mean([episode.length for episode in episodes])), 1) if episodes else "",
    }


def measure(weights: Path, episodes: int) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each policy in each environment."""
    for hand_task in ("pen", "door", "hammer", "relocate"):
        file = weights / f"dapg_{hand_task}.npz"
        expert = expert_of_weights(file, activation="tanh", output="none", input="observation")
        for drawn in (True, False):
            played = expert_episodes(hand_task, expert, episodes, drawn)
            scores = [normalised_score(*REFERENCE_RETURNS[hand_task], [episode]) for episode in played]
            policy = "DAPG expert, actions drawn" if drawn else "DAPG expert, mean actions"
            yield summarise(hand_task, policy, "normalised score", scores, played)
    recorded = read_npz(weights / "door_human_demos.npz", ("rewards", "terminals"))
    replayed = replay_door(weights / "door_human_demos.npz")
    starts = np.concatenate([[0], np.flatnonzero(recorded["terminals"])[:-1] + 1])
    before, after = (np.add.reduceat(rewards, starts) for rewards in (recorded["rewards"], replayed["rewards"]))
    yield summarise("door", "demonstrations, as recorded", "return", before, [])
    yield summarise("door", "demonstrations, replayed", "return", after, [])
    yield summarise("door", "demonstrations", "|replayed - recorded return|", np.abs(after - before), [])
    file = weights / "d4rl_ant_walker.npz"
    walker = expert_of_weights(file, activation="relu", output="tanh", input="ogbench-direction", direction_scale=10)
    for maze in MAPS:
        played = maze_episodes(maze, walker, episodes)
        scores = [normalised_score(*REFERENCE_RETURNS["antmaze"], [episode]) for episode in played]
        yield summarise(f"antmaze-{maze}", "D4RL's ant walker, noise 0.2", "normalised score", scores, played)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--episodes", type=int, default=25)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    packages = ("mujoco", "gymnasium-robotics", "ogbench")
    print(*(f"{name} {importlib.metadata.version(name)}" for name in packages), sep=", ", file=sys.stderr)
    rows = []
    for row in measure(arguments.weights, arguments.episodes):
        print(*row.values(), sep=", ", flush=True)
        rows.append(row)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
