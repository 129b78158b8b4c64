"""Trained policies: act on observations, save and load."""

import functools
import reprlib
import secrets
from math import prod
from pathlib import Path
from typing import Annotated, Any, NotRequired

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from msgspec import Meta
from numpy.typing import ArrayLike

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.bounds import LONGEST
from drol.checkpoints import DamagedCheckpoint, load_tree, read_arrays, read_metadata, save_tree
from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions, Observation, in_order, reject_masked
from drol.data.standardisation import Standardisation
from drol.decoding import Positive, convert, entries
from drol.errors import InputError
from drol.transition import Spec

LARGEST = float(np.finfo(np.float32).max)  # largest valid value in an observation


class Policy(eqx.Module):
    """A policy for observations in the units of the environment or the robot.

    docs/deploy.md explains how to run a policy on a robot.

    Use `act` in scripts, `for_control` in a fast control loop, and `draw` in compiled code.
    """

    algorithm: Algorithm
    networks: Any  # the `policy` of the algorithm's state
    standardisation: Standardisation
    action_box: ActionBox | None = eqx.field(static=True, default=None)  # action bounds of the data, if it was scaled
    observation_dimensions: Dimensions | None = eqx.field(static=True, default=None)  # names, if the data has them
    action_dimensions: Dimensions | None = eqx.field(static=True, default=None)

    @property
    def observation_names(self) -> tuple[str, ...] | None:
        """The names of the numbers of an observation, in the order of `act`; None if unknown."""
        return self.observation_dimensions and self.observation_dimensions.names

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """The names of the numbers of an action, in the order of `act`; None if unknown."""
        return self.action_dimensions and self.action_dimensions.names

    def act(self, observation: Observation, seed: int | None = None, best_of: int | None = None) -> np.ndarray:
        """Return an action in the units of the data.

        Args:
            observation: One observation, a batch of them along a first axis, or either as a mapping of all
                `observation_names` to numbers.
            seed: The same seed gives the same action. If None, each call uses new random numbers, so that a policy
                with several modes uses all of them in a loop.
            best_of: The number of actions to draw, from which the critic chooses the best; the method's default if
                None.

        Returns:
            One action [action], or one for each observation of a batch [batch, action].

        Example:
            >>> import drol
            >>> policy = drol.load_policy("runs/demo")  # doctest: +SKIP
            >>> policy.act([0.0, 0.0], seed=0).shape  # doctest: +SKIP
            (2,)
        """
        shape = self.standardisation.mean.shape
        values = check_observation(in_order(observation, self.observation_dimensions), shape, batch=True)
        single = values.shape == shape
        values = values[None] if single else values
        key = check_seed(new_seed() if seed is None else seed)
        keys = jax.random.split(key, len(values))
        actions = self.in_units_of_the_data(draw_batch(self, values, keys, self.algorithm.check_best_of(best_of)))
        return actions[0] if single else actions

    def for_control(self, seed: int | None = None, best_of: int | None = None) -> "ControlPolicy":
        """Return the policy compiled for one observation at a time, with its own random state.

        Args:
            seed: Two controllers with the same seed draw the same actions in the same order. If None, each controller
                draws different actions.
            best_of: The number of actions to draw, from which the critic chooses the best; the method's default if
                None.

        Returns:
            A compiled function from an observation to an action in the units of the data.
        """
        return ControlPolicy(self, seed, best_of)

    def draw(self, observation: Array, key: Array, best_of: int | None = None) -> Array:
        """Draw one action in [-1, 1] for one observation; may be traced, batched and compiled."""
        standardised = self.standardisation(jnp.asarray(observation, jnp.float32))
        return self.algorithm.act(self.networks, standardised, key, best_of)

    def draw_each(self, observations: Array | np.ndarray, keys: Array, best_of: int | None = None) -> Array:
        """Draw one action in [-1, 1] for each observation and key of a batch; may be traced and compiled."""
        return jax.vmap(lambda observation, key: self.draw(observation, key, best_of))(observations, keys)

    def in_units_of_the_data(self, action: ArrayLike) -> np.ndarray:
        """Scale actions from [-1, 1] to the action bounds of the data."""
        return from_unit(np.asarray(action), self.action_box)

    @classmethod
    def load(cls, folder: Path | str, seed: int | None = None, algorithm: type[Algorithm] | None = None) -> "Policy":
        """Load one policy from a folder in `policies/` of a run; `drol.load_policy` accepts the folder of the run.

        Args:
            folder: The folder of one step.
            seed: Its seed; the first if None.
            algorithm: The class of its algorithm, if that is neither built in nor registered.

        Returns:
            The policy.
        """
        policies = load_policies(Path(folder), algorithm)
        if seed is not None and seed not in policies:
            raise InputError(f"seed {seed} is not in {folder}; it has {' '.join(map(str, policies))}")
        return next(iter(policies.values())) if seed is None else policies[seed]


class ControlPolicy:
    """A policy for a control loop, compiled once for a single observation.

    The networks are constants of the compiled program: passing them as arguments would take as long as the network.
    """

    def __init__(self, policy: Policy, seed: int | None = None, best_of: int | None = None):
        # A call does not use the policy object: binding a method of an Equinox module takes as long as a network.
        self.shape, self.action_box = policy.standardisation.mean.shape, policy.action_box
        self.observation_dimensions = policy.observation_dimensions
        count = policy.algorithm.check_best_of(best_of)
        key = check_seed(new_seed() if seed is None else seed)

        def act(observation: Array, step: Array) -> Array:
            return policy.draw(observation, jax.random.fold_in(key, step), count)

        self.compiled = jax.jit(act).lower(np.zeros(self.shape, np.float32), np.uint32(0)).compile()
        self.step = 0  # actions drawn so far

    def __call__(self, observation: Observation) -> np.ndarray:
        """Return the action [action] for an observation (an array, or a mapping by name), in the units of the data."""
        values = check_observation(in_order(observation, self.observation_dimensions), self.shape)
        action = self.compiled(values, np.uint32(self.step))
        self.step += 1
        return from_unit(np.asarray(action), self.action_box)


def from_unit(action: np.ndarray, box: ActionBox | None) -> np.ndarray:
    """Scale actions from [-1, 1] to action bounds; return them unchanged if there are none."""
    return action if box is None else box.from_unit(action).astype(np.float32)


def check_observation(observation: ArrayLike, shape: tuple[int, ...], batch: bool = False) -> np.ndarray:
    """Return an observation [*shape], or a batch of them, as float32; reject other shapes and non-finite values."""
    reject_masked(observation)
    try:
        values = np.asarray(observation)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"the observation is not an array ({error}); this policy takes shape {list(shape)}") from error
    if values.shape != shape and not (batch and values.shape[1:] == shape and values.ndim == len(shape) + 1):
        several = ", or a batch of such" if batch else ""
        raise InputError(f"the observation has shape {list(values.shape)}; this policy takes {list(shape)}{several}")
    if values.dtype.kind not in "fiub":
        raise InputError(f"the observation is of type {values.dtype}; every value must be a number")
    if not np.abs(values).max(initial=0) <= LARGEST:  # also True for NaN
        raise InputError("the observation has values that are NaN, infinite or too large; every value must be finite")
    return values.astype(np.float32)


def new_seed() -> int:
    """Return a seed from the random numbers of the operating system."""
    return secrets.randbits(32)


def check_seed(seed: int) -> Array:
    """Return the key of a seed; raise `InputError` for an invalid seed."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise InputError(f"seed is {seed!r}; it must be a whole number from 0 to {2**32 - 1}")
    return jax.random.key(int(seed))


@eqx.filter_jit
def draw_batch(policy: Policy, observations: Array | np.ndarray, keys: Array, best_of: int) -> Array:
    """Draw an action for each observation and key; policies of the same shape share the compiled program."""
    return policy.draw_each(observations, keys, best_of)


def save_policies(
    folder: Path,
    algorithm: Algorithm,
    tree: tuple[Any, Standardisation],
    spec: Spec,
    seeds: tuple[int, ...],
    **metadata: Any,
) -> None:
    """Save the networks [seed, ...] of all seeds and their standardisation, with the metadata to load them."""
    save_tree(
        folder,
        tree,
        {
            "algorithm": algorithm_name(algorithm),
            "hyperparameters": algorithm.to_dict(),
            "observation_shape": list(spec.observation_shape),
            "action_size": spec.action_size,
            "seeds": list(seeds),
            **metadata,
        },
    )


def load_policies(folder: Path, algorithm: type[Algorithm] | None = None) -> dict[int, Policy]:
    """Load the policies of `save_policies`, one for each seed.

    Args:
        folder: The folder.
        algorithm: The class of their algorithm, if that is neither built in nor registered.
    """
    try:
        built, spec, seeds, outside = read_description(folder, algorithm)
        networks, standardisation = load_tree(folder, policy_shapes(built, spec, len(seeds)))
    except DamagedCheckpoint as error:
        raise InputError(
            f"the policy in {folder} cannot be used: {error}; remove that folder to continue without it"
        ) from error
    return {
        seed: Policy(built, jax.tree.map(lambda leaf, i=i: leaf[i], networks), standardisation, *outside)
        for i, seed in enumerate(seeds)
    }


@functools.lru_cache(maxsize=16)
def policy_shapes(algorithm: Algorithm, spec: Spec, seeds: int) -> Any:
    """Return the shapes of the saved arrays for a number of seeds; cached, because a report loads many policies."""

    def skeleton(key: Array) -> Any:
        networks = jax.vmap(lambda key: algorithm.init(key, spec).policy)
        return networks(jax.random.split(key, seeds)), Standardisation.identity(spec)

    return jax.eval_shape(skeleton, jax.random.key(0))


Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Description = entries(
    algorithm=str,
    hyperparameters=dict[str, Any],
    observation_shape=tuple[Positive, ...],
    action_size=Positive,
    seeds=Annotated[tuple[Seed, ...], Meta(min_length=1, max_length=LONGEST)],
    action_box=NotRequired[tuple[tuple[float, ...], tuple[float, ...]] | None],
)


def read_description(folder: Path, kind: type[Algorithm] | None) -> tuple[Algorithm, Spec, tuple[int, ...], list[Any]]:
    """Return the algorithm, the shapes, the seeds, and the action bounds and dimension names of saved policies.

    A checksum detects damage but not forgery, so every entry is checked before use. For example, no size may exceed
    the size of the array file.
    """
    metadata, most = read_metadata(folder), len(read_arrays(folder))
    try:
        saved = convert(metadata, Description, extra=True)
    except InputError as error:
        raise DamagedCheckpoint(str(error)) from error
    kind = kind or find_algorithm(saved["algorithm"])
    try:
        shape, size, seeds = saved["observation_shape"], saved["action_size"], saved["seeds"]
        box = saved.get("action_box")
        if len(shape) not in (1, 3) or prod(shape) > most:
            raise InputError(
                f"observation_shape: expected one size or three, as in the arrays, got {reprlib.repr(shape)}"
            )
        if size > most:
            raise InputError(f"action_size: expected a size as in its arrays, got {size}")
        if len(set(seeds)) < len(seeds):
            raise InputError(f"seeds: expected unique numbers, got {list(seeds)}")
        if box and any(len(side) != size for side in box):
            raise InputError(f"action_box: expected {size} lowest and {size} highest values, got {reprlib.repr(box)}")
        algorithm = kind.from_dict(saved["hyperparameters"])
        outside = [
            ActionBox(*box) if box else None,
            Dimensions.from_dict(metadata.get("observation_dimensions"), shape[0] if len(shape) == 1 else 0),
            Dimensions.from_dict(metadata.get("action_dimensions"), size),
        ]
    except InputError as error:
        raise DamagedCheckpoint(str(error)) from error
    return algorithm, Spec(shape, size), seeds, outside
