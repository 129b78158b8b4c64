"""Evaluate policies on data only, to choose among them without a simulator.

There are four types of metrics: the error against held-out actions and the distance to the support of the data
(support.py), the value by fitted-Q evaluation (fitted_q.py), and the rank correlation of critics with held-out returns
(this module).
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.stats import spearmanr

from drol.data.trajectories import Part, spread
from drol.errors import InputError
from drol.evaluation import fitted_q
from drol.evaluation.fitted_q import FittedQ
from drol.evaluation.held_out import split
from drol.evaluation.support import draw_precision, find_neighbours, offline_scores
from drol.policy import Policy
from drol.tasks.base import Task

UPDATES = 5_000  # of fitted-Q evaluation, for each policy
DISCOUNT = 0.99  # of values; the same for all runs, so that values are comparable
LARGEST_UNSEEN = 0.1  # a return is used for calibration if at most this share of its weight lies beyond the data
CALIBRATED = 2_048  # maximum number of transitions for calibration


class OfflineEvaluator:
    """Evaluate policies on one task; the held-out states and the initial critics are shared by all evaluations."""

    def __init__(self, task: Task, discount: float = DISCOUNT, updates: int = UPDATES):
        if not 0 <= discount < 1:
            raise InputError(f"the discount is {discount}; offline evaluation needs one of at least 0 and below 1")
        self.updates = updates
        reference, tested, self.unseen = split(task)
        self.held_out = find_neighbours(reference, tested)
        # With few updates (images on a machine without a GPU), the initial regression is short too.
        self.data = fitted_q.prepare(reference, discount, updates=min(updates, fitted_q.START_UPDATES))
        self.initial = fitted_q.initial_observations(reference)
        self.calibration = Calibration(tested, discount)

    def evaluate(self, policy: Policy, best_of: int | None = None) -> dict[str, float | None]:
        """Return all metrics of one policy; None for a metric that the data or the method does not allow."""
        score_key, fit_key, value_key = jax.random.split(jax.random.key(0), 3)
        fitted = fitted_q.fit(self.data, policy, self.updates, fit_key, best_of)
        values = np.asarray(fitted_q.policy_values(policy, fitted, self.initial, value_key, best_of))
        low, high = fitted_q.bootstrap_interval(values)
        figures = {
            **offline_scores(policy, self.held_out, score_key, best_of),
            "draw_ratio": draw_precision(policy, self.held_out, score_key).ratio,
            "value": float(values.mean()),
            "value_low": low,
            "value_high": high,
            **self.calibration.figures("value", fitted),
        }
        if policy.algorithm.critics(policy.networks) is not None:
            own = OwnCritics(policy)
            values = np.asarray(fitted_q.policy_values(policy, own, self.initial, value_key, best_of))
            figures |= {"own_value": float(values.mean()), **self.calibration.figures("own", own)}
        return {name: value if value is None or np.isfinite(value) else None for name, value in figures.items()}


class OwnCritics(eqx.Module):
    """The critics of a policy, as functions of raw observations of the environment."""

    policy: Policy

    def __call__(self, observation: Array, action: Array) -> Array:
        """Return the values [ensemble, ...]."""
        critics = self.policy.algorithm.critics(self.policy.networks)
        assert critics is not None
        return critics(self.policy.standardisation(observation), action)


class Calibration:
    """Held-out transitions whose discounted return is known."""

    def __init__(self, part: Part, discount: float):
        returns, unseen = part.trajectories.discounted_returns(discount)
        begin, end = part.transitions
        known = begin + np.flatnonzero(unseen[begin:end] <= LARGEST_UNSEEN)
        chosen = known[spread(len(known), CALIBRATED)]
        self.returns = returns[chosen]
        self.batch = part.dataset.take(jnp.asarray(chosen)) if len(chosen) > 1 else None

    def figures(self, name: str, critic: FittedQ | OwnCritics) -> dict[str, float | None]:
        """Return the rank correlation of Q with the returns, and the mean of Q minus the returns."""
        if self.batch is None:
            return {f"{name}_rank": None, f"{name}_bias": None}
        q = np.asarray(fitted_q.data_values(critic, self.batch.observation, self.batch.action)).mean(0)
        return {f"{name}_rank": rank_correlation(q, self.returns), f"{name}_bias": float((q - self.returns).mean())}


def rank_correlation(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> float | None:
    """Return Spearman's correlation; None if one of the sequences is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    correlation, _ = spearmanr(first, second)
    return float(correlation)  # pyright: ignore[reportArgumentType]
