"""How well data alone orders policies whose true worth a simulator knows, and whether remedies help.

    python benchmarks/offline_ranking.py RUN... --csv results/offline_ranking.csv --document docs/offline-evaluation.md

The saved policies of the runs (all but the untrained one, or those of `--steps`) are judged by all figures of
`drol evaluate --offline` and by fitted-Q evaluation with a remedy; rows that the file has already are kept, so that it
can be stopped and go on. Without runs it makes the document's tables anew. True worth: the score that training recorded
and, in point mazes, the mean discounted value from the states in which trajectories of the data begin, which is what
fitted-Q evaluation estimates.
"""

import argparse
import csv
import dataclasses
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms import algorithm_name
from drol.cli.jax_cache import keep_compiled_programs
from drol.data.trajectories import spread, trajectories_of
from drol.evaluation import fitted_q
from drol.evaluation.episodes import draw_rows
from drol.evaluation.held_out import split
from drol.evaluation.offline import UPDATES, OfflineEvaluator, rank_correlation
from drol.evaluation.support import NEIGHBOURS, OUTSIDE, REFERENCE, action_distance, draw_actions, nearest
from drol.experiments.documents import fill_document
from drol.policy import Policy
from drol.runs.run import Run, open_run
from drol.tasks.base import Task

COMMAND = "python benchmarks/offline_ranking.py"
STARTS, STEPS, DISCOUNT = 50, 400, 0.99
LONGER = 4  # times the updates
RESAMPLES = 2_000
# Each figure, the sign that makes more of it better, and what it is called in the document.
FIGURES = {
    "value": (1, "fitted-Q evaluation"),
    "value_low": (1, "its lower end"),
    "longer": (1, f"{LONGER} times the updates"),
    "pessimistic": (1, "all critics learn from the lowest"),
    "nearest_data_action": (1, "actions outside the support become the nearest data action"),
    "worst_outside": (1, "leaving the support is worth the least possible"),
    "value_rank": (1, "rank of its Q with held-out returns"),
    "own_value": (1, "value by the method's own critic"),
    "outside_support": (-1, "share of actions outside the support"),
    "support_ratio": (-1, "distance to the data over that of the data"),
    "single_sample_error": (-1, "error of one draw"),
    "routed_bc_loss": (-1, "error of the nearest of 16"),
}
IDENTITY = ("task", "run", "step", "seed")


class Starts:
    """A point in each of many mazes, put where trajectories of the data begin."""

    def __init__(self, task: Task):
        assert task.make_environment
        assert task.maze
        first = trajectories_of(task.train).first
        self.positions = np.asarray(task.train.take(first[spread(len(first), STARTS)]).observation, np.float64)
        self.environments = [task.make_environment() for _ in self.positions]
        self.goal, self.radius = np.asarray(task.maze.goal), task.maze.goal_radius

    def true_value(self, policy: Policy, best_of: int) -> float:
        """Return the mean discounted value, -1 a step until the point is in the goal."""
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
            actions = np.asarray(draw_rows(policy, positions, seeds, np.full(len(seeds), step, np.uint32), best_of))
            for number in np.flatnonzero(np.isinf(steps)):
                positions[number] = self.environments[number].unwrapped.step(actions[number])[0]
        return float((-(1 - DISCOUNT ** np.minimum(steps, 10**9)) / (1 - DISCOUNT)).mean())


class Support(eqx.Module):
    """What the data did near some states, and how far an action may be from it."""

    neighbour_action: Array  # [states, k, action]
    limit: Array

    def outside(self, action: Array) -> Array:
        return action_distance(action, self.neighbour_action) > self.limit

    def nearest(self, action: Array) -> Array:
        """Return actions [states, action], those outside the support as the nearest action of the data."""
        squared = jnp.square(action[:, None, :] - self.neighbour_action).sum(-1)
        found = jnp.take_along_axis(self.neighbour_action, squared.argmin(-1)[:, None, None], 1)[:, 0]
        return jnp.where(self.outside(action)[:, None], found, action)


class Judge:
    """Everything that the policies of one task share."""

    def __init__(self, task: Task, updates: int):
        self.plain = OfflineEvaluator(task, DISCOUNT, updates)
        self.starts = Starts(task) if task.maze is not None else None
        reference, _, _ = split(task)
        known = reference.dataset.take(jnp.asarray(reference.spread(REFERENCE)))
        standardise = self.plain.data.start.standardisation
        points = np.asarray(standardise(known.observation))
        limit = jnp.quantile(self.plain.held_out.data_distance, OUTSIDE)

        def support(observation: Array) -> Support:
            index = nearest(points, np.asarray(standardise(observation)), NEIGHBOURS)
            return Support(known.action[index], limit)

        data = self.plain.data
        self.next_support = support(data.dataset.take(data.index).next_observation)
        self.first_support = support(self.plain.initial)

    def figures(self, policy: Policy, best_of: int) -> dict[str, float | None]:
        """Return what data alone says of a policy, plain and with each remedy."""
        plain, data, updates = self.plain, self.plain.data, self.plain.updates
        action_key, fit_key, value_key = jax.random.split(jax.random.key(1), 3)
        next_action = fitted_q.policy_actions(policy, data.dataset, data.index, action_key, best_of)
        first_action = draw_actions(policy, plain.initial, value_key, best_of)  # [draws, states, action]
        inside = jnp.where(self.next_support.outside(next_action), data.lowest, data.highest)
        bounded = dataclasses.replace(data, highest=inside)
        first_inside = ~jax.vmap(self.first_support.outside)(first_action)

        def value(fitted: fitted_q.FittedQ, action: Array) -> Array:
            return jax.lax.map(lambda each: fitted(plain.initial, each).mean(0), action)  # [draws, states]

        longer = fitted_q.fit_bellman(data, next_action, fit_key, LONGER * updates)
        lowest = fitted_q.fit_bellman(data, next_action, fit_key, updates, pessimistic=True)
        projected = fitted_q.fit_bellman(data, self.next_support.nearest(next_action), fit_key, updates)
        worst = fitted_q.fit_bellman(bounded, next_action, fit_key, updates)
        remedies = {
            "longer": value(longer, first_action),
            "pessimistic": value(lowest, first_action),
            "nearest_data_action": value(projected, jax.vmap(self.first_support.nearest)(first_action)),
            "worst_outside": jnp.where(first_inside, value(worst, first_action), data.lowest),
        }
        found = plain.evaluate(policy, best_of) | {name: float(each.mean()) for name, each in remedies.items()}
        return {name: found.get(name) for name in FIGURES}


def judge_run(run: Run, judge: Judge, steps: list[int], known: set[tuple]) -> Iterable[dict]:
    """Judge the policies of a run after some steps, all but the untrained one if none are given, that are not known."""
    algorithm = run.config.algorithm
    recorded = {(row.step, row.seed): row.score for row in run.evaluations}
    for step in steps or [step for step in run.steps if step]:
        for seed in run.config.seeds:
            name = "/".join(run.path.absolute().parts[-2:])
            row = {"task": run.config.task, "run": name, "step": step, "seed": seed}
            if tuple(map(str, row.values())) in known or recorded.get((step, seed)) is None:
                continue
            policy, best_of = run.policy(step, seed), algorithm.check_best_of(None)
            settings = algorithm.to_dict()
            row |= {"algorithm": algorithm_name(algorithm), "num_candidates": settings.get("num_candidates")}
            row |= {"bc_weight": settings.get("bc_weight"), "recorded_score": recorded[step, seed]}
            row |= {"true_value": judge.starts.true_value(policy, best_of) if judge.starts else None}
            yield row | judge.figures(policy, best_of)


def tables(rows: list[dict]) -> dict[str, str]:
    """Return the document's tables."""
    names = {row["task"]: row["task"].replace("-navigate-singletask", "").removesuffix("-v0") for row in rows}
    tasks = {name: [row for row in rows if row["task"] == task] for task, name in names.items()}
    counts = [
        f"{task}: {len(chosen)} policies of {len({row['run'] for row in chosen})} runs"
        for task, chosen in tasks.items()
    ]
    made = {"counts": "; ".join(counts) + "."}
    correlations = [
        "| figure | " + " | ".join(f"{task}, {truth}" for task in tasks for truth in TRUTHS.values()) + " |"
    ]
    correlations.append("| --- " * (1 + len(tasks) * len(TRUTHS)) + "|")
    for name, (sign, label) in FIGURES.items():
        cells = [correlation(chosen, name, truth, sign) for chosen in tasks.values() for truth in TRUTHS]
        correlations.append(f"| {label} | " + " | ".join(cells) + " |")
    made["correlations"] = "\n".join(correlations)
    regrets = [
        "| chosen by | " + " | ".join(f"{task}, {what}" for task in tasks for what in ("of a run", "of all")) + " |"
    ]
    regrets.append("| --- " * (1 + 2 * len(tasks)) + "|")
    rules: dict[str, Callable[[dict], float]] = {label: by(name, sign) for name, (sign, label) in FIGURES.items()}
    for label, rule in ({"the last checkpoint": lambda row: row["step"]} | rules).items():
        cells = [cell for chosen in tasks.values() for cell in regret(chosen, rule)]
        regrets.append(f"| {label} | " + " | ".join(cells) + " |")
    made["regret"] = "\n".join(regrets)
    biased = []
    for name in ("value", "longer", "pessimistic", "nearest_data_action", "worst_outside"):
        cells = []
        for chosen in tasks.values():
            known = [row for row in chosen if row[name] is not None and row["true_value"] is not None]
            error = np.asarray([row[name] - row["true_value"] for row in known])
            outside = rank_correlation(error, [row["outside_support"] for row in known]) if len(known) > 2 else None
            cells += [f"{error.mean():+.1f} ({np.abs(error).max():.0f})" if known else "-", signed(outside)]
        biased.append(f"| {FIGURES[name][1]} | " + " | ".join(cells) + " |")
    head = "| estimate | " + " | ".join(f"{task}: mean (largest) error | with outside" for task in tasks) + " |"
    made["bias"] = "\n".join([head, "| --- " * (1 + 2 * len(tasks)) + "|", *biased])
    return made


TRUTHS = {"recorded_score": "score", "true_value": "value"}


def by(name: str, sign: int) -> Callable[[dict], float]:
    return lambda row: -np.inf if row[name] is None else sign * row[name]


def correlation(rows: list[dict], name: str, truth: str, sign: int) -> str:
    """Return Spearman's correlation with its interval from drawing the policies anew."""
    pairs = np.asarray([(sign * row[name], row[truth]) for row in rows if None not in (row[name], row[truth])])
    if len(pairs) < 3:
        return "-"
    generator = np.random.default_rng(0)
    drawn = [rank_correlation(*pairs[generator.integers(0, len(pairs), len(pairs))].T) for _ in range(RESAMPLES)]
    low, high = np.quantile([each for each in drawn if each is not None], (0.025, 0.975))
    return f"{signed(rank_correlation(*pairs.T))} ({low:+.2f} to {high:+.2f})"


def regret(rows: list[dict], rule: Callable[[dict], float]) -> tuple[str, str]:
    """Return how many points of score the choice is below the best: of the steps of each run, and of all policies."""
    runs = {row["run"]: [each for each in rows if each["run"] == row["run"]] for row in rows}
    within = [
        max(each["recorded_score"] for each in run) - max(run, key=rule)["recorded_score"] for run in runs.values()
    ]
    best = max(row["recorded_score"] for row in rows)
    top = max(map(rule, rows))
    chosen = [row["recorded_score"] for row in rows if rule(row) == top]  # several: as if one were drawn
    return f"{np.mean(within):.1f}", f"{best - np.mean(chosen):.1f}"


def signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def read(path: Path) -> list[dict]:
    """Return the rows of the file, numbers as numbers."""
    if not path.exists():
        return []
    words = {"task", "run", "algorithm"}
    with path.open(newline="") as file:
        return [
            {name: each if name in words else (float(each) if each else None) for name, each in row.items()}
            | {name: int(row[name]) for name in ("step", "seed")}
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--steps", type=int, nargs="+", default=[])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--document", type=Path)
    parsed = parser.parse_args()
    keep_compiled_programs()
    judges: dict[str, Judge] = {}
    known = {tuple(str(row[name]) for name in IDENTITY) for row in read(parsed.csv)}
    for path in parsed.runs:
        run = open_run(path)
        if run.config.task not in judges:
            judges[run.config.task] = Judge(run.task, parsed.updates)
        for row in judge_run(run, judges[run.config.task], parsed.steps, known):
            new = not parsed.csv.exists()
            with parsed.csv.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                if new:
                    writer.writeheader()
                writer.writerow(
                    {name: round(each, 4) if isinstance(each, float) else each for name, each in row.items()}
                )
            print(
                *(f"{name} {each:.2f}" if isinstance(each, float) else each for name, each in row.items()), flush=True
            )
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables(read(parsed.csv)))
    if not parsed.runs and not parsed.document:
        sys.exit("give runs to judge, or a document whose tables are made anew")


if __name__ == "__main__":
    main()
