"""What the paper claims happens inside DROL, measured on the saved policies of a run.

A data action is owned by the latent whose candidate is nearest to it. The paper's argument is that ownership moves: a
winner follows Q away from an action, and another latent takes over. For fixed states, data actions and latents this
module says how often that happens between two checkpoints and how long a winner holds, which latents never win, how
much better winners are than other latents by the critic, and how often one step along Q makes a winner lose.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms import algorithm_name
from drol.algorithms.parts import clip
from drol.algorithms.routing import candidate_diagnostics, draw_latents
from drol.data.trajectories import spread
from drol.errors import InputError
from drol.experiments.results.collect import find_runs
from drol.policy import Policy
from drol.progress import Report
from drol.runs.run import Run, open_run
from drol.storage import write_whole

ROUTING = ("drol", "drol-equation")  # methods that route
STATES = 4096  # of the data, evenly spread, at which ownership is followed
BANK = 256  # latents from which the candidates of all states are taken, so that each has 16 chances to win
Q_STEP = 0.1  # times the root of the action size: how far a winner moves along Q


@dataclass(frozen=True)
class MechanismRow:
    """What was found at one checkpoint of one seed.

    Attributes:
        handover: Share of data actions whose owner is not that of the checkpoint before; None at the first. Owners
            that were drawn by lot would give 1 - 1/K.
        held: Updates for which an owner has held its action, in the mean; counted in checkpoints, so not less than one.
        cold: Share of the latents of the bank that own no action at all.
        q_gap: Q of winners minus Q of other latents, mean over states, by the smaller of the critics.
        handoff: Share of winners that lose their action when they move one step along Q.
        routed_bc_loss: As in training, for these states.
        candidate_distance: As in training, for these states.
    """

    task: str
    method: str
    candidates: int
    seed: int
    step: int
    handover: float | None
    held: float
    cold: float
    q_gap: float
    handoff: float
    routed_bc_loss: float
    candidate_distance: float


class Routed(NamedTuple):
    """States with their candidates and winners."""

    candidates: Array  # [state, K, action]
    winner: Array  # [state], index of the candidate nearest to the data action
    moved: Array  # [state, action], the winner after one step along Q
    winner_after: Array  # [state], index of the nearest candidate when the winner has moved
    q_winner: Array  # [state], by the smaller of the critics
    q_other: Array  # [state], of the candidate after the winner in the list, which is any other latent


@eqx.filter_jit
def route(policy: Policy, observation: Array, action: Array, latent: Array) -> Routed:
    """Route data actions to candidates, move each winner one step along Q, and route again."""
    state = jax.vmap(policy.standardisation)(observation)
    candidates = clip(policy.networks.actor.candidates(state, latent))
    index = jnp.arange(len(action))
    winner = nearest(candidates, action)
    before = candidates[index, winner]

    def value(actions: Array) -> Array:
        return policy.networks.critic(state, actions).min(0)

    gradient = jax.grad(lambda actions: value(actions).sum())(before)
    length = Q_STEP * action.shape[-1] ** 0.5
    moved = clip(before + length * gradient / (jnp.linalg.norm(gradient, axis=-1, keepdims=True) + 1e-9))
    after = nearest(candidates.at[index, winner].set(moved), action)
    other = candidates[index, (winner + 1) % candidates.shape[1]]
    return Routed(candidates, winner, moved, after, value(before), value(other))


def nearest(candidates: Array, action: Array) -> Array:
    """Return the index of the candidate that is nearest to each action."""
    return jnp.square(candidates - action[:, None]).sum(-1).argmin(-1)


class Followed(NamedTuple):
    """What stays the same over the checkpoints of a run."""

    observation: Array
    action: Array
    bank_index: np.ndarray  # [state, K], which latents of the bank the candidates of a state have
    latent: Array  # [state, K, action]


def follow(run: Run, states: int = STATES) -> Followed:
    """Choose states of the data and latents for them; the same for every run on the same data with the same K."""
    check_routes(run)
    algorithm: Any = run.config.algorithm
    data = run.task.train
    batch = data.take(jnp.asarray(spread(data.size, states)))
    action_size = data.spec.action_size
    bank = draw_latents(jax.random.key(0), (BANK, action_size))
    count = algorithm.num_candidates
    generator = np.random.default_rng(0)
    index = np.stack([generator.choice(BANK, count, replace=count > BANK) for _ in range(len(batch.action))])
    return Followed(batch.observation, batch.action, index, bank[index])


def check_routes(run: Run) -> None:
    """Refuse a run whose method does not route."""
    name = algorithm_name(run.config.algorithm)
    if name not in ROUTING:
        raise InputError(f"the run in {run.path} is of {name}, which routes nothing; give a run of drol")


def measure_mechanism(run: Run) -> list[MechanismRow]:
    """Follow the ownership of data actions over the saved policies of a run.

    Args:
        run: A run of DROL.

    Returns:
        A row for each seed and each step whose policies were saved, but the one before training.
    """
    followed, rows = follow(run), []
    algorithm: Any = run.config.algorithm
    steps = [step for step in run.steps if step > 0]
    for seed in run.config.seeds:
        owners: list[np.ndarray] = []
        for step in steps:
            routed = route(run.policy(step, seed), followed.observation, followed.action, followed.latent)
            winner = np.asarray(routed.winner)
            owners.append(followed.bank_index[np.arange(len(winner)), winner])
            wins = np.bincount(owners[-1], minlength=BANK)
            spreads = candidate_diagnostics(routed.candidates, followed.action)
            rows.append(
                MechanismRow(
                    task=run.config.task,
                    method=algorithm_name(algorithm),
                    candidates=algorithm.num_candidates,
                    seed=seed,
                    step=step,
                    handover=float((owners[-1] != owners[-2]).mean()) if len(owners) > 1 else None,
                    held=mean_hold(owners) * (steps[1] - steps[0] if len(steps) > 1 else step),
                    cold=float((wins == 0).mean()),
                    q_gap=float((routed.q_winner - routed.q_other).mean()),
                    handoff=float((routed.winner != routed.winner_after).mean()),
                    routed_bc_loss=float(spreads["routed_bc_loss"]),
                    candidate_distance=float(spreads["candidate_distance"]),
                )
            )
    return rows


def measure_runs(paths: Iterable[Path], report: Report | None = None) -> list[MechanismRow]:
    """Measure all runs that route and have policies, in some folders and below them; others are passed over.

    Args:
        paths: Runs, or folders with such.
        report: Called as `report(done, total, what)` before each run.
    """
    opened = [open_run(folder) for path in paths for folder in find_runs(path)]
    routing = [run for run in opened if algorithm_name(run.config.algorithm) in ROUTING and run.steps]
    rows = []
    for number, run in enumerate(routing):
        if report:
            report(number, len(routing), str(run.path))
        rows += measure_mechanism(run)
    return rows


def add_rows(before: Iterable[MechanismRow], rows: Sequence[MechanismRow]) -> list[MechanismRow]:
    """Return rows together with those from before that are of other seeds, methods, tasks or values of K."""

    def run(row: MechanismRow) -> tuple:
        return row.task, row.method, row.candidates, row.seed

    measured = {run(row) for row in rows}
    return sorted([*(row for row in before if run(row) not in measured), *rows], key=lambda row: (*run(row), row.step))


def mean_hold(owners: Sequence[np.ndarray]) -> float:
    """Return for how many checkpoints in a row an action keeps its owner, in the mean over all such stretches."""
    stacked = np.stack(owners)  # [checkpoint, state]
    stretches = stacked.shape[1] + int((stacked[1:] != stacked[:-1]).sum())
    return stacked.size / stretches


def write_mechanism(rows: Iterable[MechanismRow], path: Path) -> None:
    """Write rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(MechanismRow)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = asdict(row)
        writer.writerow({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in values.items()})
    write_whole(path, text.getvalue())


def read_mechanism(path: Path) -> list[MechanismRow]:
    """Read what `write_mechanism` wrote."""
    words, whole = ("task", "method"), ("candidates", "seed", "step")

    def value(name: str, text: str) -> Any:
        return text if name in words else int(text) if name in whole else float(text) if text else None

    try:
        with path.open() as file:
            rows = [MechanismRow(**{name: value(name, row[name]) for name in row}) for row in csv.DictReader(file)]
    except (TypeError, ValueError, OSError, csv.Error) as error:
        raise InputError(f"{path} is not a file of `drol paper mechanism` ({error})") from error
    for number, row in enumerate(rows, 2):
        missing = [name for name, each in asdict(row).items() if each is None and name != "handover"]
        if missing or row.candidates < 1:
            wrong = f"{missing[0]} is missing" if missing else f"candidates is {row.candidates}"
            raise InputError(f"{path}, line {number}: {wrong}; `drol paper mechanism` makes such a file")
    return rows
