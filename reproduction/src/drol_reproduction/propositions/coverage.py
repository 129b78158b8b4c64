"""Proposition 4 as numbers: `P(K draws reach all M neighbourhoods) >= 1 - sum (1 - p_m)^K >= 1 - M exp(-K p_min)`.

`coverage` computes it for any finite case. `actor_coverage` checks it for an actor of DROL, with measured `p_m`; its
neighbourhoods are discs around data actions, which overlap.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms.drol import DROL
from drol.algorithms.parts import clip
from drol.algorithms.routing import draw_latents
from drol.networks.actors import LatentActor
from drol_reproduction.propositions.bandit import SMALL, bandit_data, train

NEIGHBOURHOODS, RADIUS = 8, 0.3


def coverage(
    probabilities: Sequence[float] | np.ndarray,
    draws: int,
    members: np.ndarray | None = None,
    trials: int = 20_000,
    seed: int = 0,
) -> dict[str, float]:
    """Return the probability that K draws reach all neighbourhoods: counted, exact, and both bounds.

    Args:
        probabilities: The probability of each event of a draw; with the remaining probability up to 1, a draw is in no
            neighbourhood.
        draws: K.
        members: [neighbourhood, event], true where the event lies in the neighbourhood; if None, each event is a
            neighbourhood, so that the neighbourhoods are disjoint.
        trials: The number of times that K draws are made.
        seed: The seed of the draws.
    """
    events = np.asarray(probabilities)
    inside = np.eye(len(events), dtype=bool) if members is None else members
    p = inside @ events
    rest = max(0.0, 1 - events.sum())
    seen = np.random.default_rng(seed).multinomial(draws, [*events, rest], size=trials)[:, :-1] > 0
    counted = float((seen.astype(np.float32) @ inside.T > 0).all(1).mean())
    indices = range(len(inside))
    subsets = (list(subset) for size in range(len(inside) + 1) for subset in itertools.combinations(indices, size))
    return {
        "counted": counted,
        "standard_error": standard_error(counted, trials),
        "exact": sum(  # by inclusion and exclusion: all draws miss every neighbourhood of a subset
            (-1) ** len(subset) * max(0.0, 1 - float(events @ inside[subset].any(0))) ** draws for subset in subsets
        ),
        "union_bound": 1 - float(((1 - p) ** draws).sum()),
        "exponential_bound": 1 - len(p) * math.exp(-draws * p.min()),
    }


def standard_error(share: float, trials: int) -> float:
    """Return the standard error of a counted share, at least the standard error for a single hit."""
    return math.sqrt(max(share * (1 - share), 1 / trials) / trials)


def trained_actor(bc_weight: float, q_weight: float, updates: int) -> tuple[LatentActor, np.ndarray]:
    """Train a small DROL on the bandit with two modes; return its actor and data actions, half of them in each mode."""
    dataset = bandit_data()
    algorithm = DROL(**SMALL, bc_weight=bc_weight, q_weight=q_weight, target_rate=0.05)
    state = train(algorithm, dataset, (0,), updates)
    actor = jax.tree.map(lambda array: array[0], state.actor.network)
    return actor, np.asarray(dataset.take(jnp.arange(NEIGHBOURHOODS)).action)


def actor_coverage(
    actor: LatentActor, centres: np.ndarray, draws: Sequence[int], measured: int = 200_000, trials: int = 4_000
) -> dict[str, Any]:
    """Check proposition 4 for an actor with one state and discs around data actions.

    Separate draws give the `p_m` and the share of trials in which K draws reach every disc.
    """

    def inside(key: jax.Array, count: int) -> np.ndarray:
        latent = draw_latents(key, (count, actor.action_size))
        actions = np.asarray(clip(actor(jnp.zeros(1), latent)))
        return np.square(actions[:, None] - centres).sum(-1) <= RADIUS**2  # [draw, neighbourhood]

    key, *keys = jax.random.split(jax.random.key(0), 1 + len(draws))
    events, counts = np.unique(inside(key, measured), axis=0, return_counts=True)
    p = counts / measured @ events
    rows = []
    for each, count in zip(keys, draws, strict=True):
        reached = inside(each, trials * count).reshape(trials, count, -1).any(1).all(-1).mean()
        row = coverage(counts / measured, count, events.T, trials=1)
        row |= {"counted": float(reached), "standard_error": standard_error(float(reached), trials)}
        rows.append({"draws": count} | row)
    return {
        "probabilities": p.tolist(),
        "in_more_than_one": float((counts * (events.sum(1) > 1)).sum() / measured),
        "in_none": float((counts * (events.sum(1) == 0)).sum() / measured),
        "rows": rows,
    }
