"""Everything that can be said of the policies of a run without a simulator, so that one of them can be chosen.

Four figures: the error against held-out actions and the distance to the support of the data (support.py), the value by
fitted-Q evaluation (fitted_q.py), and how well critics order held-out returns (here).
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms import find_algorithm
from drol.checkpoints import saved_steps, step_name
from drol.data.trajectories import Part, split, spread
from drol.errors import InputError
from drol.evaluation import fitted_q
from drol.evaluation.fitted_q import FittedQ
from drol.evaluation.support import find_neighbours, offline_scores
from drol.networks.critics import QEnsemble
from drol.policy import Policy
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Task

UPDATES = 5_000  # of fitted-Q evaluation, for each policy
DISCOUNT = 0.99  # for an algorithm that has none
LARGEST_UNSEEN = 0.1  # a return counts for calibration if at most this weight of it lies outside the data
CALIBRATED = 2_048  # transitions, at most


class OfflineEvaluator:
    """What the evaluations of many policies on one task share: the held-out states and the start of the critics."""

    def __init__(self, task: Task, discount: float = DISCOUNT, updates: int = UPDATES):
        if not 0 <= discount < 1:
            raise InputError(f"the discount is {discount}; offline evaluation needs one of at least 0 and below 1")
        self.updates = updates
        reference, tested, self.unseen = split(task)
        self.held_out = find_neighbours(reference, tested)
        # Who asks for few updates, as with images on a machine without a GPU, does not wait for many before them.
        self.data = fitted_q.prepare(reference, discount, updates=min(updates, fitted_q.START_UPDATES))
        self.initial = fitted_q.initial_observations(reference)
        self.calibration = Calibration(tested, discount)

    def evaluate(self, policy: Policy, best_of: int = 1) -> dict[str, float | None]:
        """All figures of one policy; None where the data or the method does not have what one needs."""
        score_key, fit_key, value_key = jax.random.split(jax.random.key(0), 3)
        fitted = fitted_q.fit(self.data, policy, self.updates, fit_key, best_of)
        values = np.asarray(fitted_q.policy_values(policy, fitted, self.initial, value_key, best_of))
        low, high = fitted_q.bootstrap_interval(values)
        figures = {
            **offline_scores(policy, self.held_out, score_key, best_of),
            "value": float(values.mean()),
            "value_low": low,
            "value_high": high,
            **self.calibration.figures("value", fitted),
        }
        own = own_critic(policy, self.held_out.action.shape[-1])
        if own is not None:
            values = np.asarray(fitted_q.policy_values(policy, own, self.initial, value_key, best_of))
            figures |= {"own_value": float(values.mean()), **self.calibration.figures("own", own)}
        return {name: value if value is None or np.isfinite(value) else None for name, value in figures.items()}


class Calibration:
    """Held-out transitions whose discounted return is known."""

    def __init__(self, part: Part, discount: float):
        returns, unseen = part.trajectories.discounted_returns(discount)
        begin, end = part.transitions
        known = begin + np.flatnonzero(unseen[begin:end] <= LARGEST_UNSEEN)
        chosen = known[spread(len(known), CALIBRATED)]
        self.returns = returns[chosen]
        self.batch = part.dataset.take(jnp.asarray(chosen)) if len(chosen) > 1 else None

    def figures(self, name: str, critic: FittedQ) -> dict[str, float | None]:
        """Rank correlation of Q with returns, and how much Q is above them."""
        if self.batch is None:
            return {f"{name}_rank": None, f"{name}_bias": None}
        q = np.asarray(fitted_q.data_values(critic, self.batch.observation, self.batch.action)).mean(0)
        return {f"{name}_rank": rank_correlation(q, self.returns), f"{name}_bias": float((q - self.returns).mean())}


def own_critic(policy: Policy, action_size: int) -> FittedQ | None:
    """The critic that the method trained, if it is part of the policy and sees nothing but state and action."""
    critic = getattr(policy.networks, "critic", None)
    if not isinstance(critic, QEnsemble):
        return None
    mean = policy.standardisation.mean
    features = jax.eval_shape(critic.encoder, mean).shape[-1]
    inputs = critic.members.layers[0].kernel.shape[-2]
    if inputs != features + action_size:
        return None
    return FittedQ(critic, policy.standardisation, jnp.zeros(()), jnp.ones(()))


def rank_correlation(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> float | None:
    """Spearman's: the correlation of ranks, ties sharing theirs; None where one of the two never changes."""
    ranks = [average_ranks(np.asarray(values)) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return float(np.corrcoef(np.stack(ranks))[0, 1])


def average_ranks(values: np.ndarray) -> np.ndarray:
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def evaluate_run_offline(
    directory: RunDirectory,
    step: int | None = None,
    every_step: bool = False,
    best_of: int = 1,
    updates: int = UPDATES,
    discount: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Evaluate a saved policy of every seed of a run, the last one unless told otherwise; record each row at once.

    The discount is that of the run's algorithm unless it is given; give it to compare runs whose discounts differ.
    """
    run = directory.read_config()["run"]
    if updates < 1 or best_of < 1:
        raise InputError(f"updates is {updates} and best_of is {best_of}; both must be at least 1")
    name = run["algorithm"]["name"]
    if best_of > 1 and not find_algorithm(name).draws_actions:
        raise InputError(
            f"best_of is {best_of}, but {name} acts with its mean, so there is nothing to choose; it must be 1"
        )
    saved = saved_steps(directory.policies)
    if not saved:
        raise InputError(f"the run in {directory.path} has no policy yet; train it first")
    if step is not None and step not in saved:
        raise InputError(f"no policy of step {step} in {directory.path}; it has {', '.join(map(str, saved))}")
    if discount is None:
        discount = float(run["algorithm"].get("discount", DISCOUNT))
    task = load_task(run["task"], Path(run["dataset"]) if run["dataset"] else None)
    evaluator = OfflineEvaluator(task, discount, updates)
    for each in saved if every_step else (saved[-1] if step is None else step,):
        for seed in run["seeds"]:
            start = time.monotonic()
            policy = Policy.load(directory.policies / step_name(each), seed)
            row = {"step": each, "seed": seed, "best_of": best_of, "discount": discount, "updates": updates}
            row |= {"unseen": evaluator.unseen, **evaluator.evaluate(policy, best_of)}
            row["seconds"] = round(time.monotonic() - start, 2)
            directory.log_offline_evaluation(row)
            yield row
