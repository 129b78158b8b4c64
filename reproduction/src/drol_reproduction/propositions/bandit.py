"""One pull of a bandit whose best action is off-centre inside the data, and what BC, FQL and DROL make of it.

    data    a uniform in two discs, r = 1 - 1.5 |a - a*|^2 in the better one, 0.7 - |a - centre|^2 in the other, + noise
    truth   the same inside the discs, 0 outside: actions that are not in the data are worth nothing
    loss    weight |pull|^2 / d_a - Q / E|Q| for FQL (to its teacher's action) and DROL (data to nearest candidate)

All methods see the same data and learn their own critic from it. The weights of FQL and DROL are swept over one grid.
The figure shows the best weight of each, and the pulls of cloning at its largest weight. The command
`python -m drol_reproduction.propositions.bandit --out docs/images/bandit.png` makes the figure and prints its numbers.
"""

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from drol.algorithms import Algorithm, find_algorithm
from drol.algorithms.drol import DROL
from drol.algorithms.fql import FQL
from drol.algorithms.parts import clip, flow_action
from drol.compiling import fast_jit
from drol.data.dataset import Dataset
from drol.reports.figure_style import GOAL, INK, MUTED, REACHED, SERIES, save_figure, styled
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals

BETTER, OTHER, RADIUS = np.asarray([0.5, 0.0]), np.asarray([-0.5, 0.0]), 0.4
OPTIMUM = BETTER + 0.25 * np.asarray([0.6, 0.8])  # five eighths of the way from the centre to the edge
WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # the grid of both papers for a normalised Q
SEEDS, UPDATES = (0, 1, 2), 16_000
SMALL = {"hidden_sizes": (64, 64), "batch_size": 128, "learning_rate": 1e-3}
COLOURS = {"bc": MUTED, "fql": SERIES[1], "drol": REACHED}
NAMES = {"bc": "BC", "fql": "FQL", "drol": "DROL"}


def inside(actions: np.ndarray) -> np.ndarray:
    """Return whether actions [..., 2] lie in the support of the data."""
    return np.minimum(*(np.linalg.norm(actions - centre, axis=-1) for centre in (BETTER, OTHER))) <= RADIUS


def true_reward(actions: np.ndarray) -> np.ndarray:
    """Return `1 - 1.5 |a - a*|^2` in the better disc, `0.7 - |a - centre|^2` in the other, 0 outside both."""
    to_better, to_other, to_optimum = (np.square(actions - x).sum(-1) for x in (BETTER, OTHER, OPTIMUM))
    return inside(actions) * np.where(to_better < to_other, 1 - 1.5 * to_optimum, 0.7 - to_other)


def bandit_data(count: int = 2_000, noise: float = 0.1, seed: int = 0) -> Dataset:
    """Return episodes of one pull, as many in one disc as in the other."""
    generator = np.random.default_rng(seed)
    angle, radius = 2 * np.pi * generator.uniform(size=count), RADIUS * np.sqrt(generator.uniform(size=count))
    centre = np.where(np.arange(count)[:, None] % 2, OTHER, BETTER)
    action = centre + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    reward = true_reward(action) + noise * generator.normal(size=count)
    twice = np.repeat(np.arange(count), 2)  # the second row of an episode only holds its final observation
    return Dataset.from_rows(
        np.zeros((2 * count, 1)), action[twice], reward[twice], np.zeros(2 * count), np.arange(2 * count) % 2 == 1
    )


def train(algorithm: Algorithm, dataset: Dataset, seeds: tuple[int, ...], updates: int) -> Any:
    """Return the states of all seeds after `updates` updates, the last quarter with a tenth of the learning rate.

    With the full learning rate to the end, Adam's noise around the solution would hide a method's bias.
    """
    keys = seed_keys(seeds)
    states = init_seeds(algorithm, keys, dataset.spec)
    totals = zero_totals(algorithm, states, dataset, keys)
    slow = dataclasses.replace(algorithm, learning_rate=algorithm.to_dict()["learning_rate"] / 10)
    fast_updates = updates * 3 // 4
    states, totals = train_chunk(algorithm, states, totals, dataset, keys, 1, fast_updates)
    return train_chunk(slow, states, totals, dataset, keys, fast_updates + 1, updates)[0]


@fast_jit(static_argnames="count")
def draw_actions(algorithm: Algorithm, policies: Any, observations: Array, count: int) -> Array:
    """Draw actions [seed, observation, count, action] from the policies of all seeds."""
    keys = jax.random.split(jax.random.key(0), count)

    def draw(policy: Any, observation: Array) -> Array:
        return jax.vmap(lambda key: algorithm.act(policy, observation, key))(keys)

    return jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(policies, observations)


@dataclass(frozen=True)
class Outcome:
    """The result of a method with one weight; the metrics are per seed."""

    method: str
    weight: float | None  # weight of cloning against Q; None for BC
    actions: np.ndarray  # [seed, draw, 2]
    critic: np.ndarray | None  # values of the first seed on `grid()`
    pulls: np.ndarray | None  # of the first seed: the actions that cloning pulls, and their targets, [2, pull, 2]

    @property
    def reward(self) -> np.ndarray:
        return true_reward(self.actions).mean(-1)

    @property
    def inside(self) -> np.ndarray:
        return inside(self.actions).mean(-1)

    @property
    def distance(self) -> np.ndarray:
        """The mean distance from the optimum of the actions in the better disc; NaN if no action is there."""
        better = np.linalg.norm(self.actions - BETTER, axis=-1) <= RADIUS
        distance = np.where(better, np.linalg.norm(self.actions - OPTIMUM, axis=-1), 0.0).sum(-1)
        return np.where(better.any(-1), distance / np.maximum(better.sum(-1), 1), np.nan)


def grid(count: int = 81) -> np.ndarray:
    """Return a grid of actions [count, count, 2] over the action bounds."""
    axis = np.linspace(-1, 1, count)
    return np.stack(np.meshgrid(axis, axis), -1)


@fast_jit()
def cloning_pulls(algorithm: Algorithm, state: Any, dataset: Dataset) -> Array:
    """Return the actions that the cloning term of one update pulls, and their targets, [2, batch, 2].

    The draws are the algorithm's own. FQL pulls every sample to its teacher's action for the same latent. For each data
    action, DROL draws K candidates and pulls the nearest one to the data action.
    """
    batch_key, draw_key = jax.random.split(jax.random.key(0))
    batch = dataset.sample(batch_key, algorithm.batch_size)
    actor = state.actor.network
    if isinstance(algorithm, FQL):
        noise = algorithm.draw(batch, draw_key).noise
        teacher = flow_action(state.flow.network, batch.observation, noise, algorithm.flow_steps)
        return jnp.stack([clip(actor(batch.observation, noise)), teacher])
    assert isinstance(algorithm, DROL)
    winner = algorithm.route(actor, batch, algorithm.draw(batch, draw_key).latent)
    return jnp.stack([clip(actor(batch.observation, winner)), batch.action])


def run(method: str, weight: float | None, dataset: Dataset, seeds: tuple[int, ...], updates: int) -> Outcome:
    """Train a method with one weight and draw from it."""
    own = {"bc": {}, "fql": {"alpha": weight, "normalise_q": True}, "drol": {"bc_weight": weight}}[method]
    rates = {} if method == "bc" else {"target_rate": 0.05}
    algorithm = find_algorithm(method)(**SMALL, **rates, **own)
    states = train(algorithm, dataset, seeds, updates)
    actions = np.asarray(draw_actions(algorithm, states.policy, jnp.zeros((1, 1)), 4_000))[:, 0]
    if method == "bc":
        return Outcome(method, weight, actions, None, None)
    first = jax.tree.map(lambda array: array[0], states)
    points = jnp.asarray(grid().reshape(-1, 2), jnp.float32)
    value = first.critic.network(jnp.zeros((len(points), 1)), points).mean(0)
    pulls = np.asarray(cloning_pulls(algorithm, first, dataset))
    return Outcome(method, weight, actions, np.asarray(value).reshape(grid().shape[:-1]), pulls)


def sweep(seeds: tuple[int, ...] = SEEDS, updates: int = UPDATES) -> dict[str, list[Outcome]]:
    """Train BC once, FQL and DROL with every weight, on the same data."""
    dataset = bandit_data()
    weights = {"bc": (None,), "fql": WEIGHTS, "drol": WEIGHTS}
    return {name: [run(name, weight, dataset, seeds, updates) for weight in each] for name, each in weights.items()}


def best(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome with the highest expected reward over the seeds."""
    return max(outcomes, key=lambda outcome: outcome.reward.mean())


@styled
def bandit_figure(outcomes: dict[str, list[Outcome]]) -> Figure:
    """Draw actions over the true reward, the metrics of every weight, and the pulls of cloning."""
    figure = Figure(figsize=(13.0, 6.2), layout="constrained")
    axes = figure.subplots(2, 4)
    for panel, method in zip(axes[0, :3], outcomes, strict=True):
        draw_actions_panel(panel, best(outcomes[method]))
    for panel, method in zip(axes[1, :2], ("fql", "drol"), strict=True):
        draw_pulls_panel(panel, outcomes[method][-1])  # the largest weight of cloning
    curves = (
        (axes[0, 3], "reward", "expected true reward"),
        (axes[1, 2], "distance", "distance from the optimum\n(actions in the better disc)"),
        (axes[1, 3], "inside", "share of actions inside the data"),
    )
    for panel, name, title in curves:
        for method in ("fql", "drol"):
            values = np.asarray([getattr(outcome, name) for outcome in outcomes[method]])  # [weight, seed]
            means = np.ma.masked_invalid(values).mean(1)  # a seed without an action in the better disc has no distance
            panel.semilogx(WEIGHTS, means, "-", color=COLOURS[method], lw=1.8, label=NAMES[method])
            panel.semilogx(WEIGHTS, values, "o", color=COLOURS[method], ms=3, alpha=0.6)
        if name != "distance":  # BC has no action in the better disc
            panel.axhline(getattr(outcomes["bc"][0], name).mean(), color=COLOURS["bc"], ls=":", label=NAMES["bc"])
        panel.set(title=title, xlabel="weight of cloning against a normalised Q")
        panel.set_ylim((0, RADIUS) if name == "distance" else (-0.04, 1.12))
    axes[0, 3].axhline(1, color=GOAL, lw=1)
    axes[0, 3].text(WEIGHTS[0], 1.01, "the best action", color=MUTED, fontsize=8, va="bottom")
    axes[1, 3].legend(fontsize=8, loc="lower left")
    return figure


def draw_box(panel: Any) -> None:
    """Draw the true reward, dark where it is high, the edge of the data and the optimum."""
    panel.imshow(
        true_reward(grid(201)), origin="lower", extent=(-1, 1, -1, 1), cmap="Greys", vmin=0, vmax=2.2, zorder=0
    )
    for centre in (BETTER, OTHER):
        panel.add_patch(Circle((centre[0], centre[1]), RADIUS, fill=False, edgecolor=MUTED, lw=0.8))
    panel.scatter(*OPTIMUM, marker="*", s=130, color=GOAL, edgecolor=INK, lw=0.7, zorder=6)
    panel.set(xlim=(-1, 1), ylim=(-0.8, 0.8), aspect="equal", xticks=[], yticks=[])
    panel.grid(False)
    panel.spines[:].set_visible(False)


def draw_actions_panel(panel: Any, outcome: Outcome) -> None:
    """Draw actions of the first seed, and its critic where there is one."""
    draw_box(panel)
    if outcome.critic is not None:
        panel.contour(*np.moveaxis(grid(), -1, 0), outcome.critic, levels=8, colors=MUTED, linewidths=0.5, alpha=0.7)
    panel.scatter(*outcome.actions[0, :400].T, s=9, color=COLOURS[outcome.method], alpha=0.7, lw=0, zorder=4)
    weight = "" if outcome.weight is None else f", weight {outcome.weight:g}"
    panel.set_title(f"{NAMES[outcome.method]}{weight}")
    panel.set_xlabel(f"reward {outcome.reward.mean():.2f}, {100 * outcome.inside.mean():.0f}% inside the data")


def draw_pulls_panel(panel: Any, outcome: Outcome) -> None:
    """Draw, for the first seed, the actions that the cloning term pulls and the targets that they are pulled to."""
    assert outcome.pulls is not None
    draw_box(panel)
    colour, (pulled, towards) = COLOURS[outcome.method], outcome.pulls
    for start, end in zip(pulled, towards, strict=True):
        panel.plot(*np.stack([start, end]).T, color=colour, lw=0.5, alpha=0.6)
    panel.scatter(*towards.T, s=7, facecolor="white", edgecolor=colour, lw=0.6, zorder=4)
    panel.scatter(*outcome.actions[0, :400].T, s=9, color=MUTED, alpha=0.6, lw=0, zorder=3)
    panel.scatter(*pulled.T, s=11, color=colour, lw=0, zorder=5)
    what = "every draw to its teacher" if outcome.method == "fql" else "nearest of 16 draws to the data"
    panel.set_title(f"{NAMES[outcome.method]}, weight {outcome.weight:g}: {what}", fontsize=9)
    share, length = 100 * inside(pulled).mean(), np.linalg.norm(pulled - towards, axis=1).mean()
    panel.set_xlabel(
        f"pulled: {share:.0f}% inside, mean length {length:.2f}\nall draws: {100 * outcome.inside[0]:.0f}% inside"
    )


def table(outcomes: dict[str, list[Outcome]]) -> str:
    """Return the numbers of the figure: the mean over seeds, with the lowest and the highest in brackets."""

    def show(values: np.ndarray) -> str:
        known = values[np.isfinite(values)]
        seeds = "" if len(known) == len(values) else f", {len(known)} of {len(values)} seeds"
        return f"{known.mean():.2f} ({known.min():.2f} to {known.max():.2f}{seeds})" if len(known) else "-"

    rows = ["| method | weight | true reward | inside the data | distance from the optimum |", "| --- " * 5 + "|"]
    for outcome in (outcome for each in outcomes.values() for outcome in each):
        weight = "-" if outcome.weight is None else f"{outcome.weight:g}"
        cells = NAMES[outcome.method], weight, *map(show, (outcome.reward, outcome.inside, outcome.distance))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/bandit.png"), help="the figure to write")
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"updates of each run, default {UPDATES}")
    options = parser.parse_args(arguments)
    outcomes = sweep(SEEDS, options.updates)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(bandit_figure(outcomes), options.out, dpi=110)
    print(table(outcomes))
    print(options.out)


if __name__ == "__main__":
    main()
