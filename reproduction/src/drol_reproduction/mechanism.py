"""Measure the mechanism that the paper claims: which latent owns which data action, and how the owner changes.

The measurement continues a run from a saved checkpoint, exactly as the run itself would, and compares the actor after
some updates (the lag) with the actor of the checkpoint. Methods and values of K are comparable because all have the
same number of draws: 16 latents for each of 4,096 states of the data, from a bank of 256 latents of the method's prior.

Definitions, fixed before the runs:

owner       of a data action: the latent, of the 16 of its state, whose candidate (clipped action) is nearest to it.
changed     share of data actions whose owner after the lag is another latent.
distance    of old and new owner: mean distance of the two latents where the owner changed, over the mean distance of
            two latents of the bank. 1: the new owner is like a random latent. Well below 1: a near neighbour.
rank        of the old owner after the lag: 1 if it is still the nearest, 8.5 on average for a random latent.
movement    of candidates: mean distance of an owner's action before and after the lag, over the mean distance of two
            candidates of one state before it.
rose        share of candidates whose action after the lag has a higher Q than their action before it, both by the
            critics after the lag (their minimum, which DROL climbs). Three groups: old owners that lost their data
            action, owners that kept it, and one other latent of each state.
nearest     mean distance from a data action to its nearest candidate: before the lag, after it, and after it if every
            old owner had kept its data action. The last cannot be smaller than the second, so only its size matters.
spread      root mean squared distance of two candidates of one state, of 64 draws for every K and method, over the same
            number for the actions of the 32 data states nearest to it (mean over states of each).
collapsed   a state where that ratio is below 0.3. A run is collapsed if its spread is below 0.3.
handed over a state that is not collapsed, and whose data action has another owner after the lag.
stable      a state that is neither.

Without Q, or with a tether, owners also change: Adam's noise exchanges near neighbours. So shares mean something only
beside the controls' shares (FQL, DROL without Q, `drol-control`).
"""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.algorithms import algorithm_name, find_algorithm
from drol.algorithms.parts import clip
from drol.algorithms.routing import draw_latents
from drol.checkpoints import DamagedCheckpoint, load_tree, saved_steps, step_name
from drol.compiling import fast_jit
from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation
from drol.data.trajectories import spread
from drol.errors import InputError
from drol.evaluation.support import NEIGHBOURS, REFERENCE, REFERENCE_BYTES, nearest
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.progress import Report
from drol.results.collect import changed_settings
from drol.runs.config_file import CONFIG
from drol.runs.run import Run, open_run
from drol.storage import write_whole
from drol.training.placement import place
from drol.training.trainer import Trainer

# Methods with a one-step actor f(s, z), and the distribution of z: the ball of DROL or a normal distribution.
PRIORS = {
    **dict.fromkeys(("drol", "drol-equation", "drol-control", "drol-choice"), "ball"),
    **dict.fromkeys(("fql", "driftql", "gfp"), "normal"),
}
LAGS = (1, 3, 10, 30, 100, 300, 1_000, 3_000)  # in updates
STATES = 4_096  # number of data states, evenly spaced over the dataset
BANK, DRAWS = 256, 16  # number of latents in the bank, and number for each state
SPREAD_DRAWS = 64
COLLAPSED = 0.3  # limit of collapse, as a share of the data's spread
CHUNK = 256  # states at once, so that the activations of the networks fit in memory


@dataclass(frozen=True)
class MechanismRow:
    """One seed of one run at one lag; the module defines every number.

    Attributes:
        task: The task.
        method: The name of the algorithm.
        settings: JSON with sorted names: the settings of the run that are not at their defaults.
        seed: The seed.
        step: The checkpoint from which training continued, in updates.
        lag: The number of updates after the checkpoint.
        changed: Share of data actions with another owner.
        latent_distance: Distance of old and new owner; None if no owner changed.
        old_rank: Rank of the old owner.
        movement: Movement of candidates.
        rose_changed: Share of old owners that rose in Q, where the owner changed; None if none did.
        rose_kept: The same where the owner kept its data action; None if none did.
        rose_other: The same for another latent of each state.
        nearest_before: Distance from data to the nearest candidate at the checkpoint.
        nearest_after: The same after the lag.
        nearest_if_kept: The same after the lag, if every old owner had kept its data action.
        spread: Spread at the checkpoint, as a share of the data's.
        collapsed: Share of states that are collapsed.
        handed_over: Share of states that are handed over.
        stable: Share of states that are stable.
    """

    task: str
    method: str
    settings: str
    seed: int
    step: int
    lag: int
    changed: float
    latent_distance: float | None
    old_rank: float
    movement: float
    rose_changed: float | None
    rose_kept: float | None
    rose_other: float
    nearest_before: float
    nearest_after: float
    nearest_if_kept: float
    spread: float
    collapsed: float
    handed_over: float
    stable: float

    @property
    def run(self) -> tuple[str, str, str, int]:
        """The common fields of the rows of one seed of one run."""
        return self.task, self.method, self.settings, self.seed

    def setting(self, name: str) -> Any:
        """Return the value of a hyperparameter; None if the method has none of this name."""
        given = json.loads(self.settings)
        return given.get(name, getattr(find_algorithm(self.method), name, None))


class Followed(NamedTuple):
    """The fixed states, data actions and latents at which a run is measured after every lag (number of updates)."""

    observation: Array  # [state, *observation], as the networks see it
    action: Array  # [state, action]
    latent: Array  # [state, DRAWS, action]
    spread_latent: Array  # [state, SPREAD_DRAWS, action]
    latent_distance: float  # mean distance of two latents of the bank
    data_spread: np.ndarray  # [state], spread of the actions of neighbouring states


def follow(trainer: Trainer, prior: str) -> Followed:
    """Choose states, data actions and latents; they depend only on the data, the prior and the action size."""
    data = trainer.task.train
    index = spread(data.size, STATES)
    batch = trainer.dataset.take(jnp.asarray(index))
    size = data.spec.action_size
    bank = draw_prior(jax.random.key(0), (BANK, size), prior)
    generator = np.random.default_rng(0)
    own = np.stack([generator.choice(BANK, DRAWS, replace=False) for _ in index])
    between = np.linalg.norm(np.asarray(bank)[:, None] - np.asarray(bank), axis=-1)
    return Followed(
        observation=batch.observation,
        action=batch.action,
        latent=bank[own],
        spread_latent=draw_prior(jax.random.key(1), (len(index), SPREAD_DRAWS, size), prior),
        latent_distance=float(between.sum() / (BANK * (BANK - 1))),
        data_spread=data_spread(trainer, batch.observation),
    )


def draw_prior(key: Array, shape: tuple[int, ...], prior: str) -> Array:
    """Draw latents [..., action] from the prior of a method."""
    return draw_latents(key, shape) if prior == "ball" else jax.random.normal(key, shape)


def data_spread(trainer: Trainer, observation: Array) -> np.ndarray:
    """Return the root mean squared distance [state] of two data actions among the nearest data states."""
    searched = max(1, min(REFERENCE, REFERENCE_BYTES // (4 * trainer.dataset.spec.observation_size)))
    data = trainer.dataset.take(jnp.asarray(spread(trainer.dataset.size, searched)))
    points = jnp.asarray(data.observation, jnp.float32)
    standardise = Standardisation.from_moments(*observation_moments(points))
    index = nearest(np.asarray(standardise(points)), np.asarray(standardise(observation)), NEIGHBOURS)
    return pair_distance(np.asarray(data.action)[index])


def pair_distance(actions: np.ndarray) -> np.ndarray:
    """Return the root mean squared distance [state] of two different actions among the N of [state, N, action]."""
    count = actions.shape[1]
    variance = np.square(actions - actions.mean(1, keepdims=True)).sum(-1).mean(1)
    return np.sqrt(2 * count / max(count - 1, 1) * variance)


@fast_jit()
def candidates_of(actor: LatentActor, observation: Array, latent: Array) -> Array:
    """Return the clipped actions [state, draw, action] of latents [state, draw, action]."""
    return jax.lax.map(lambda pair: clip(actor.candidates(*pair)), (observation, latent), batch_size=CHUNK)


@fast_jit()
def least_q(critic: QEnsemble, observation: Array, action: Array) -> Array:
    """Return the minimum of the critics [state]."""
    return critic(observation, action).min(0)


class Routed(NamedTuple):
    """Candidates of one actor, and their owners."""

    candidates: np.ndarray  # [state, DRAWS, action]
    distance: np.ndarray  # [state, DRAWS], distance to the data action
    owner: np.ndarray  # [state]

    def of(self, latent: np.ndarray) -> np.ndarray:
        """Return the action [state, action] of one latent of each state."""
        return self.candidates[np.arange(len(latent)), latent]


def route(actor: LatentActor, followed: Followed) -> Routed:
    """Route each data action to the nearest candidate of its state."""
    candidates = np.asarray(candidates_of(actor, followed.observation, followed.latent))
    distance = np.linalg.norm(candidates - np.asarray(followed.action)[:, None], axis=-1)
    return Routed(candidates, distance, distance.argmin(1))


def compare_ownership(before: Routed, after: Routed, critic: QEnsemble, followed: Followed) -> dict[str, Any]:
    """Return the metrics of a row that compare two actors of one seed; `critic` belongs to the later actor."""
    state, old, new = np.arange(len(before.owner)), before.owner, after.owner
    changed = old != new
    latent = np.asarray(followed.latent)
    moved_owner = np.linalg.norm(latent[state, old] - latent[state, new], axis=-1)
    moved_action = np.linalg.norm(after.of(old) - before.of(old), axis=-1)
    kept_distance = after.distance[state, old]

    def rose(which: np.ndarray) -> np.ndarray:
        values = [
            np.asarray(least_q(critic, followed.observation, jnp.asarray(routed.of(which))))
            for routed in (before, after)
        ]
        return values[1] > values[0]

    rose_owner = rose(old)
    return {
        "changed": float(changed.mean()),
        "latent_distance": mean_or_none(moved_owner[changed] / followed.latent_distance),
        "old_rank": float((after.distance < kept_distance[:, None]).sum(1).mean() + 1),
        "movement": float(moved_action.mean() / max(pair_distance(before.candidates).mean(), 1e-12)),
        "rose_changed": mean_or_none(rose_owner[changed]),
        "rose_kept": mean_or_none(rose_owner[~changed]),
        "rose_other": float(rose((old + 1) % DRAWS).mean()),
        "nearest_before": float(before.distance.min(1).mean()),
        "nearest_after": float(after.distance.min(1).mean()),
        "nearest_if_kept": float(kept_distance.mean()),
    }


def mean_or_none(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def continued(
    run: Run, step: int, lags: Sequence[int], report: Report | None = None
) -> Iterator[tuple[Trainer, int, Any]]:
    """Yield the trainer, the lag and the states [seed, ...] of a checkpoint (lag 0) and after each lag.

    Nothing is written. The updates are the next updates of the run, so a continued run has bit-identical states on the
    same machine.
    """
    config = dataclasses.replace(run.config, steps=step + max(lags), evaluation_episodes=0)
    placement = place(len(config.seeds), config.algorithm.batch_size, None)  # the placement of a resumed run
    trainer = Trainer(config, run.directory, run.task, placement, quiet=True)
    folder = run.directory.checkpoints / step_name(step)
    try:
        states = load_tree(folder, {"states": trainer.shapes["states"]}, only=False, finite=True)["states"]
    except DamagedCheckpoint as error:
        raise InputError(f"{folder}: the checkpoint cannot be used: {error}; choose another with --step") from error
    trainer.put(states, placement.gather(trainer.totals))
    yield trainer, 0, placement.gather(trainer.states)
    done = 0
    for lag in sorted(set(lags)):
        while done < lag:  # in pieces, so that progress shows
            until = min(lag, done + 100)
            trainer.states, trainer.totals = trainer.updates.run(
                trainer.states, trainer.totals, step + done + 1, step + until
            )
            done = until
            if report:
                report(done, max(lags), str(run.path))
        yield trainer, lag, placement.gather(trainer.states)


def measure_mechanism(
    run: Run, step: int | None = None, lags: Sequence[int] | None = None, report: Report | None = None
) -> list[MechanismRow]:
    """Continue a run from a checkpoint and follow the ownership of data actions.

    Args:
        run: A run of a method with a one-step actor that draws a latent: `drol`, `drol-control`, `fql` and others.
        step: The checkpoint to start from; the newest if None.
        lags: The numbers of updates after which to compare; `LAGS` if None.
        report: Called as `report(done, total, what)` while it trains.

    Returns:
        A row for each seed and lag, in this order. The same call gives the same rows.
    """
    prior, step, lags = check_candidates(run), check_step(run, step), tuple(lags or LAGS)
    followed: Followed | None = None
    start: list[tuple[Routed, float, np.ndarray]] = []
    found: dict[tuple[int, int], MechanismRow] = {}
    for trainer, lag, states in continued(run, step, lags, report):
        followed = followed or follow(trainer, prior)
        for number, seed in enumerate(run.config.seeds):
            state = jax.tree.map(lambda leaf, number=number: leaf[number], states)
            routed = route(state.actor.network, followed)
            if lag == 0:
                start.append((routed, *spread_of(state.actor.network, followed)))
                continue
            before, whole_spread, collapsed = start[number]
            numbers = compare_ownership(before, routed, state.critic.network, followed)
            handed_over = (before.owner != routed.owner) & ~collapsed
            found[number, lag] = MechanismRow(
                task=run.config.task,
                method=algorithm_name(run.config.algorithm),
                settings=changed_settings(run.config, {}, run.config.steps),
                seed=seed,
                step=step,
                lag=lag,
                **numbers,
                spread=whole_spread,
                collapsed=float(collapsed.mean()),
                handed_over=float(handed_over.mean()),
                stable=float((~handed_over & ~collapsed).mean()),
            )
    return [found[key] for key in sorted(found)]


def spread_of(actor: LatentActor, followed: Followed) -> tuple[float, np.ndarray]:
    """Return the spread of an actor as a share of the data's spread, and whether each state is collapsed."""
    own = pair_distance(np.asarray(candidates_of(actor, followed.observation, followed.spread_latent)))
    return float(own.mean() / max(followed.data_spread.mean(), 1e-12)), own < COLLAPSED * followed.data_spread


def check_candidates(run: Run) -> str:
    """Return the prior of a run's latents; raise an error for a method without latents."""
    name = algorithm_name(run.config.algorithm)
    if name not in PRIORS:
        raise InputError(
            f"{run.path}: {name} has no candidates to follow; a one-step actor that draws a latent is needed, "
            f"so give a run of {', '.join(PRIORS)}"
        )
    if run.config.online_steps:
        raise InputError(f"{run.path}: the run trains online; the mechanism needs a run without --online-steps")
    return PRIORS[name]


def check_step(run: Run, step: int | None) -> int:
    """Return the newest checkpoint of a run, or the given one; raise an error if there is none."""
    saved = [each for each in saved_steps(run.directory.checkpoints) if each > 0]
    if not saved:
        raise InputError(f"{run.path}: no checkpoint to continue from; train the run first")
    if step is not None and step not in saved:
        raise InputError(f"{run.path}: no checkpoint of step {step}; it has {', '.join(map(str, saved))}")
    return saved[-1] if step is None else step


def measure_runs(
    paths: Iterable[Path], step: int | None = None, lags: Sequence[int] | None = None, report: Report | None = None
) -> list[MechanismRow]:
    """Measure runs; of the runs in a folder, only those with candidates and a checkpoint are measured.

    Args:
        paths: Runs, or folders with runs.
        step: The checkpoint to start from; the newest of each run if None.
        lags: The numbers of updates after which to compare; `LAGS` if None.
        report: Called as `report(done, total, what)` while it trains; counts the updates of all runs.
    """
    runs = []
    for path in paths:
        opened = [open_run(file.parent) for file in sorted(path.rglob(CONFIG))]
        if not opened:
            raise InputError(f"{path}: contains no runs; give a run or a folder with runs")
        suitable = [run for run in opened if algorithm_name(run.config.algorithm) in PRIORS and run.step > 0]
        runs += suitable or opened[:1]  # the check of the first run raises an error with the reason
    for run in runs:
        check_candidates(run)
        check_step(run, step)
    rows, longest = [], max(lags or LAGS)
    for number, run in enumerate(runs):

        def show(done: float, _: float | None, what: str, number: int = number) -> None:
            if report:
                report(number * longest + done, len(runs) * longest, what)

        show(0, None, str(run.path))
        rows += measure_mechanism(run, step, lags, show)
    return rows


def add_rows(before: Iterable[MechanismRow], rows: Sequence[MechanismRow]) -> list[MechanismRow]:
    """Return rows together with the earlier rows of other runs, seeds and checkpoints."""
    measured = {(*row.run, row.step) for row in rows}
    kept = [row for row in before if (*row.run, row.step) not in measured]
    return sorted([*kept, *rows], key=lambda row: (*row.run, row.step, row.lag))


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
    """Read the rows that `write_mechanism` wrote."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(MechanismRow)}

    def value(name: str, text: str, line: int) -> Any:
        kind = kinds[name]
        if text == "" and kind == float | None:
            return None
        try:
            number = text if kind is str else int(text) if kind is int else float(text)
            if name == "settings" and not isinstance(json.loads(text), dict):
                raise ValueError(text)
        except ValueError as error:
            expected = "settings as JSON" if kind is str else "a whole number" if kind is int else "a number"
            raise InputError(f"{path}, line {line}: {name} is {text!r}; it must be {expected}") from error
        return number

    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None or list(reader.fieldnames) != list(kinds):
                raise InputError(f"{path}: the columns are not those of `drol paper mechanism`; measure the runs again")
            lines = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a file of `drol paper mechanism` ({error})") from error
    return [
        MechanismRow(**{name: value(name, row[name] or "", number) for name in kinds})
        for number, row in enumerate(lines, 2)
    ]
