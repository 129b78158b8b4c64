"""A trained policy: what acts, what it needs, and how it is saved."""

import functools
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.bounds import LONGEST
from drol.checkpoints import DamagedCheckpoint, load_tree, read_arrays, read_metadata, save_tree
from drol.data.actions import ActionBox
from drol.data.dimensions import Dimensions, Observation, in_order
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.types import Spec

LARGEST = float(np.finfo(np.float32).max)  # number that a network can be given


class Policy(eqx.Module):
    """Acts on observations as the environment or the robot gives them.

    `act` is for people and scripts; `for_control` for a loop that has to be fast; `draw` for compiled code.
    """

    algorithm: Algorithm
    networks: Any  # the `policy` of the algorithm's state
    standardisation: Standardisation
    action_box: ActionBox | None = eqx.field(static=True, default=None)  # of the data, where it was scaled
    observation_dimensions: Dimensions | None = eqx.field(static=True, default=None)  # names, where the data has them
    action_dimensions: Dimensions | None = eqx.field(static=True, default=None)

    @property
    def observation_names(self) -> tuple[str, ...] | None:
        """What the numbers of an observation are called, in the order in which `act` takes them; None: not known."""
        return self.observation_dimensions and self.observation_dimensions.names

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """What the numbers of an action are called, in the order in which `act` gives them; None: not known."""
        return self.action_dimensions and self.action_dimensions.names

    def act(self, observation: Observation, seed: int = 0, best_of: int | None = None) -> np.ndarray:
        """Return an action in the units of the data.

        Args:
            observation: One observation, a batch of them along a first axis, or either as a mapping of all
                `observation_names` to numbers.
            seed: What is drawn depends on it: the same seed gives the same action.
            best_of: Actions to draw, of which the critic chooses the best; the method's own number if None.

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
        keys = jax.random.split(check_seed(seed), len(values))
        actions = self.in_units_of_the_data(draw_batch(self, values, keys, self.algorithm.check_best_of(best_of)))
        return actions[0] if single else actions

    def for_control(self, seed: int = 0, best_of: int | None = None) -> "ControlPolicy":
        """Return the policy compiled for one observation at a time, with a random state of its own.

        Args:
            seed: Two controllers with the same seed draw the same actions in the same order.
            best_of: Actions to draw, of which the critic chooses the best; the method's own number if None.

        Returns:
            A function from an observation to an action in the units of the data, ready to be called: it is compiled.
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
        """Return actions in [-1, 1] as the robot takes them: in the box that the data's actions lived in."""
        return from_unit(np.asarray(action), self.action_box)

    @classmethod
    def load(cls, folder: Path | str, seed: int | None = None, algorithm: type[Algorithm] | None = None) -> "Policy":
        """Load one policy of a folder of `policies/` in a run; `drol.load_policy` takes the run itself.

        Args:
            folder: The folder of one step.
            seed: The seed that trained it; the first if None.
            algorithm: The class of its algorithm, where that is neither built in nor registered.

        Returns:
            The policy.
        """
        policies = load_policies(Path(folder), algorithm)
        if seed is not None and seed not in policies:
            raise InputError(f"seed {seed} is not in {folder}; it has {' '.join(map(str, policies))}")
        return next(iter(policies.values())) if seed is None else policies[seed]


class ControlPolicy:
    """A policy for a control loop: one observation in, one action out, nothing compiled on the way.

    The networks are constants of the compiled program: handing them over at every call would take as long as the
    network itself.
    """

    def __init__(self, policy: Policy, seed: int = 0, best_of: int | None = None):
        # Nothing of the policy is used in a call: to bind a method of an Equinox module takes as long as a network.
        self.shape, self.action_box = policy.standardisation.mean.shape, policy.action_box
        self.observation_dimensions = policy.observation_dimensions
        count, key = policy.algorithm.check_best_of(best_of), check_seed(seed)

        def act(observation: Array, step: Array) -> Array:
            return policy.draw(observation, jax.random.fold_in(key, step), count)

        self.compiled = jax.jit(act).lower(np.zeros(self.shape, np.float32), np.uint32(0)).compile()
        self.step = 0  # actions drawn so far

    def __call__(self, observation: Observation) -> np.ndarray:
        """Return the action [action] for an observation (numbers, or a mapping of names) in the units of the data."""
        values = check_observation(in_order(observation, self.observation_dimensions), self.shape)
        action = self.compiled(values, np.uint32(self.step))
        self.step += 1
        return from_unit(np.asarray(action), self.action_box)


def from_unit(action: np.ndarray, box: ActionBox | None) -> np.ndarray:
    """Return actions in [-1, 1] in the units of a box; without one, as they are."""
    return action if box is None else box.from_unit(action).astype(np.float32)


def check_observation(observation: ArrayLike, shape: tuple[int, ...], batch: bool = False) -> np.ndarray:
    """Return an observation [*shape], or a batch of them, as float32; refuse other shapes and what is not finite."""
    try:
        values = np.asarray(observation)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"the observation is no array ({error}); this policy takes shape {list(shape)}") from error
    if values.shape != shape and not (batch and values.shape[1:] == shape and values.ndim == len(shape) + 1):
        several = ", or a batch of such" if batch else ""
        raise InputError(f"the observation has shape {list(values.shape)}; this policy takes {list(shape)}{several}")
    if values.dtype.kind not in "fiub":
        raise InputError(f"the observation is of type {values.dtype}; every value must be a number")
    if not np.abs(values).max(initial=0) <= LARGEST:  # so NaN is refused, too
        raise InputError("the observation has values that are NaN, infinite or too large; every value must be finite")
    return values.astype(np.float32)


def check_seed(seed: int) -> Array:
    """Return the key of a seed; refuse what is none."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise InputError(f"seed is {seed!r}; it must be a whole number from 0 to {2**32 - 1}")
    return jax.random.key(int(seed))


@eqx.filter_jit
def draw_batch(policy: Policy, observations: Array | np.ndarray, keys: Array, best_of: int) -> Array:
    """Draw an action for each observation and key; compiled once for all policies of the same shape."""
    return policy.draw_each(observations, keys, best_of)


def save_policies(
    folder: Path,
    algorithm: Algorithm,
    tree: tuple[Any, Standardisation],
    spec: Spec,
    seeds: tuple[int, ...],
    **metadata: Any,
) -> None:
    """Save the networks [seed, ...] of all seeds and their standardisation, with what it takes to load them."""
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
    """Load what `save_policies` saved: a policy for each seed.

    Args:
        folder: The folder.
        algorithm: The class of their algorithm, where that is neither built in nor registered.
    """
    try:
        saved = read_description(folder, algorithm)
        networks, standardisation = load_tree(folder, policy_shapes(saved.algorithm, saved.spec, len(saved.seeds)))
    except DamagedCheckpoint as error:
        raise InputError(
            f"the policy in {folder} cannot be used: {error}; remove that folder to go on without it"
        ) from error
    return {
        seed: Policy(
            saved.algorithm, jax.tree.map(lambda leaf, i=i: leaf[i], networks), standardisation, *saved.outside
        )
        for i, seed in enumerate(saved.seeds)
    }


@functools.lru_cache(maxsize=16)
def policy_shapes(algorithm: Algorithm, spec: Spec, seeds: int) -> Any:
    """Return the shapes of what is saved of so many seeds; a report loads many policies of few kinds."""

    def skeleton(key: Array) -> Any:
        networks = jax.vmap(lambda key: algorithm.init(key, spec).policy)
        return networks(jax.random.split(key, seeds)), Standardisation.identity(spec)

    return jax.eval_shape(skeleton, jax.random.key(0))


class Description(NamedTuple):
    """What saved policies are, apart from their arrays."""

    algorithm: Algorithm
    spec: Spec
    seeds: tuple[int, ...]
    box: ActionBox | None
    observation: Dimensions | None
    action: Dimensions | None

    @property
    def outside(self) -> tuple[ActionBox | None, Dimensions | None, Dimensions | None]:
        """How observations and actions are called and scaled outside the networks."""
        return self.box, self.observation, self.action


def read_description(folder: Path, algorithm: type[Algorithm] | None) -> Description:
    """Read what saved policies are; refuse what `save_policies` cannot have written, before anything of it is used.

    A checksum tells damage, not malice. No size can be larger than the file of the arrays, so none is made that is.
    """
    metadata, most = read_metadata(folder), len(read_arrays(folder))

    def entry(name: str, words: str, right: Callable[[Any], bool]) -> Any:
        if not isinstance(metadata, dict) or name not in metadata:
            raise DamagedCheckpoint(f"it has no {name}, so it is no policy")
        if not right(metadata[name]):
            shown = repr(metadata[name])
            shown = shown if len(shown) < 80 else f"{shown[:80]}..."
            raise DamagedCheckpoint(f"its {name} is {shown}; it must be {words}")
        return metadata[name]

    def is_count(value: Any) -> bool:
        return type(value) is int and 1 <= value <= most

    def is_shape(value: Any) -> bool:
        return isinstance(value, list) and len(value) in (1, 3) and all(map(is_count, value)) and is_count(prod(value))

    def are_seeds(value: Any) -> bool:
        whole = isinstance(value, list) and all(type(each) is int and 0 <= each < 2**32 for each in value)
        return whole and 1 <= len(value) == len(set(value)) <= LONGEST

    def is_box(value: Any) -> bool:
        sides = value if isinstance(value, list) and len(value) == 2 else [None]
        return not value or all(
            isinstance(side, list) and len(side) == size and all(type(each) in (int, float) for each in side)
            for side in sides
        )

    shape = entry("observation_shape", "the size of vectors or the three of images, as in its arrays", is_shape)
    size = entry("action_size", "a whole number, as in its arrays", is_count)
    seeds = entry("seeds", f"at most {LONGEST} different whole numbers", are_seeds)
    name = entry("algorithm", "the name of an algorithm", lambda value: isinstance(value, str))
    settings = entry("hyperparameters", "a value for each name", lambda value: isinstance(value, dict))
    metadata.setdefault("action_box", None)
    box = entry("action_box", f"the lowest and the highest value of {size} dimensions", is_box)
    kind = algorithm or find_algorithm(name)
    try:
        built, sides = kind.from_dict(settings), ActionBox(*map(tuple, box)) if box else None
        seen = Dimensions.from_dict(metadata.get("observation_dimensions"), shape[0] if len(shape) == 1 else 0)
        done = Dimensions.from_dict(metadata.get("action_dimensions"), size)
    except InputError as error:
        raise DamagedCheckpoint(str(error)) from error
    return Description(built, Spec(tuple(shape), size), tuple(seeds), sides, seen, done)
