"""How well offline evaluation orders policies whose true worth a simulator knows.

    drol train --preset laptop --algorithm drol-equation --alpha 2 --steps 12000 --evaluation-interval 3000 --out runs/a
    python benchmarks/offline_ranking.py runs/a runs/b ... --csv results/offline_ranking.csv

True worth, twice: the score that training recorded (the task's own start), and the mean discounted value from the
states in which trajectories of the data begin, which is what fitted-Q evaluation estimates. Point mazes only.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from drol.algorithms import algorithm_name
from drol.cli.jax_cache import keep_compiled_programs
from drol.data.trajectories import spread, trajectories_of
from drol.evaluation.episodes import draw_rows
from drol.evaluation.offline import UPDATES, rank_correlation
from drol.evaluation.runs import evaluate_offline
from drol.policy import Policy
from drol.runs.run import open_run
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
        """Return the steps [starts] until the point is in the goal; infinite where it did not arrive in time."""
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
            actions = np.asarray(draw_rows(policy, positions, seeds, np.full(len(seeds), step, np.uint32), 1))
            for number in np.flatnonzero(np.isinf(steps)):
                positions[number] = self.environments[number].unwrapped.step(actions[number])[0]
        return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=UPDATES)
    parsed = parser.parse_args()
    keep_compiled_programs()
    rows, starts = [], {}
    for path in parsed.runs:
        run = open_run(path)
        starts[run.task.name] = starts.get(run.task.name) or Starts(run.task)
        known = {(row.step, row.seed): row for row in run.offline_evaluations}
        expected = [(step, seed) for step in run.steps for seed in run.config.seeds]
        done = all(each in known and known[each].updates == parsed.updates for each in expected)
        offline = known.values() if done else evaluate_offline(run, None, True, 1, parsed.updates, DISCOUNT)
        recorded = {(row.step, row.seed): row.score for row in run.evaluations}
        for found in offline:
            steps = starts[run.task.name].steps_to_goal(run.policy(found.step, found.seed))
            value = -(1 - DISCOUNT ** np.minimum(steps, 10**9)) / (1 - DISCOUNT)
            name = algorithm_name(run.config.algorithm)
            row = {"run": path.name, "algorithm": name, "step": found.step, "seed": found.seed}
            row |= {"recorded_score": recorded[found.step, found.seed], "true_success": 100 * np.isfinite(steps).mean()}
            row |= {"true_value": value.mean()} | {name: found.figures.get(name) for name in FIGURES}
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
    """Return all policies; those that were trained at all; the last of each run; each run by itself."""
    last = {row["run"]: row for row in rows}
    trained = [row for row in rows if row["step"] > 0]
    by_run = {name: [row for row in rows if row["run"] == name] for name in last}
    return {"all policies": rows, "trained policies": trained, "the last of each run": list(last.values())} | by_run


if __name__ == "__main__":
    main()
