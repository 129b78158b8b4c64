"""How well offline evaluation orders policies whose true worth a simulator knows.

    drol train --preset laptop --steps 12000 --evaluation-interval 3000 --evaluation-episodes 10 --alpha 2 --out runs/a
    python benchmarks/offline_ranking.py runs/a runs/b ... --csv results/offline_ranking.csv

True worth, twice: the score that training recorded (the task's own start), and the mean discounted value from the
states in which trajectories of the data begin, which is what fitted-Q evaluation estimates. Point mazes only.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from drol.checkpoints import saved_steps, step_name
from drol.cli.jax_cache import prepare_jax
from drol.data.trajectories import spread, trajectories_of
from drol.evaluation.episodes import act_rows
from drol.evaluation.offline import UPDATES, evaluate_run_offline, rank_correlation
from drol.policy import Policy
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Task

STARTS, STEPS, DISCOUNT = 50, 400, 0.99
# Each figure of `drol evaluate --offline`, and the sign that makes more of it better.
FIGURES = {
    "single_sample_error": -1,
    "routed_bc_loss": -1,
    "support_ratio": -1,
    "outside_support": -1,
    "value": 1,
    "value_low": 1,
    "value_rank": 1,
    "own_value": 1,
    "own_rank": 1,
}
TRUTHS = ("true_value", "true_success", "recorded_score")


class Starts:
    """A point in each of many mazes, put where trajectories of the data begin."""

    def __init__(self, task: Task):
        assert task.make_environment
        assert task.maze
        first = trajectories_of(task.train).first
        self.positions = np.asarray(task.train.take(first[spread(len(first), STARTS)]).observation, np.float64)
        self.environments = [task.make_environment() for _ in self.positions]
        self.goal, self.radius = np.asarray(task.maze.goal), task.maze.goal_radius

    def steps_to_goal(self, policy: Policy) -> np.ndarray:
        """Steps [starts] until the point is in the goal; infinite where it did not arrive in time."""
        for number, (environment, position) in enumerate(zip(self.environments, self.positions, strict=True)):
            environment.reset(seed=number)
            environment.unwrapped.set_xy(position)
        steps = np.full(len(self.positions), np.inf)
        positions = self.positions.astype(np.float32)
        seeds = np.arange(len(positions), dtype=np.uint32)
        for step in range(STEPS):
            arrived = np.linalg.norm(positions - self.goal, axis=-1) <= self.radius
            steps[arrived & np.isinf(steps)] = step
            if np.isfinite(steps).all():
                break
            actions = np.asarray(act_rows(policy, positions, seeds, np.full(len(seeds), step, np.uint32), 1))
            for number in np.flatnonzero(np.isinf(steps)):
                positions[number] = self.environments[number].unwrapped.step(actions[number])[0]
        return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=UPDATES)
    parsed = parser.parse_args()
    prepare_jax()
    rows, starts = [], {}
    for path in parsed.runs:
        directory = RunDirectory(path)
        run = directory.read_config()["run"]
        task = load_task(run["task"], Path(run["dataset"]) if run["dataset"] else None)
        starts[task.name] = starts.get(task.name) or Starts(task)
        known = {(row["step"], row["seed"]): row for row in directory.read_offline_evaluations()}
        expected = [(step, seed) for step in saved_steps(directory.policies) for seed in run["seeds"]]
        done = all(each in known and known[each]["updates"] == parsed.updates for each in expected)
        offline = known.values() if done else evaluate_run_offline(directory, None, True, 1, parsed.updates, DISCOUNT)
        recorded = {(row["step"], row["seed"]): row["score"] for row in directory.read_evaluations()}
        for figures in offline:
            step, seed = figures["step"], figures["seed"]
            steps = starts[task.name].steps_to_goal(Policy.load(directory.policies / step_name(step), seed))
            value = -(1 - DISCOUNT ** np.minimum(steps, 10**9)) / (1 - DISCOUNT)
            row = {"run": path.name, "algorithm": run["algorithm"]["name"], "step": step, "seed": seed}
            row |= {"recorded_score": recorded[step, seed], "true_success": 100 * np.isfinite(steps).mean()}
            row |= {"true_value": value.mean()} | {name: figures.get(name) for name in FIGURES}
            rows.append(row)
            print({name: round(each, 3) if isinstance(each, float) else each for name, each in row.items()}, flush=True)
    with parsed.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {name: round(each, 4) if isinstance(each, float) else each for name, each in row.items()} for row in rows
        )
    for label, chosen in groups(rows).items():
        print(f"\nrank correlation over {label} ({len(chosen)} policies)")
        for name, sign in FIGURES.items():
            pairs = [row for row in chosen if row[name] is not None]
            found = (
                [
                    rank_correlation([sign * row[name] for row in pairs], [row[truth] for row in pairs])
                    for truth in TRUTHS
                ]
                if len(pairs) > 1
                else [None] * 3
            )
            cells = "  ".join(
                f"{truth} {'-' if each is None else f'{each:+.2f}'}" for truth, each in zip(TRUTHS, found, strict=True)
            )
            print(f"{name:22s} n = {len(pairs):2d}  {cells}")


def groups(rows: list[dict]) -> dict[str, list[dict]]:
    """All policies; those that were trained at all; the last of each run; each run by itself."""
    last = {row["run"]: row for row in rows}
    trained = [row for row in rows if row["step"] > 0]
    by_run = {name: [row for row in rows if row["run"] == name] for name in last}
    return {"all policies": rows, "trained policies": trained, "the last of each run": list(last.values())} | by_run


if __name__ == "__main__":
    main()
