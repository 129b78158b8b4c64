"""A trained policy: what acts, what it needs, and how it is saved."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.checkpoints import DamagedCheckpoint, load_tree, read_metadata, save_tree
from drol.data.actions import ActionBox
from drol.data.images import check_standardisable
from drol.errors import InputError
from drol.types import Spec


class Standardisation(eqx.Module):
    """The shift and scale that observations had in training; mean 0 and deviation 1 change nothing."""

    mean: Array
    deviation: Array

    def __call__(self, observation: Array) -> Array:
        return (observation - self.mean) / self.deviation

    @classmethod
    def identity(cls, spec: Spec) -> Self:
        return cls(jnp.zeros(spec.observation_shape), jnp.ones(spec.observation_shape))

    @classmethod
    def of(cls, observation: Array, scale: float = 1.0) -> Self:
        """To deviation `scale` over the rows of a dataset; a constant dimension is only shifted, images are refused."""
        check_standardisable(observation)
        return cls.from_moments(observation.mean(0), observation.std(0), scale)

    @classmethod
    def from_moments(cls, mean: Array | np.ndarray, deviation: Array | np.ndarray, scale: float = 1.0) -> Self:
        return cls(jnp.asarray(mean), jnp.where(deviation < 1e-6, 1.0, deviation) / scale)


class PlainMethod:
    """A method that Equinox does not turn into a module: to bind one takes it as long as a pass through a network."""

    def __init__(self, function: Callable):
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Callable:
        return self.function if instance is None else functools.partial(self.function, instance)


Function = TypeVar("Function", bound=Callable)


def plain_method(function: Function) -> Function:
    return cast(Function, PlainMethod(function))


class Policy(eqx.Module):
    """Acts on observations as the environment gives them.

    >>> policy = Policy.load("runs/.../policies/000030000", seed=0)        # doctest: +SKIP
    >>> action = policy.act(observation, jax.random.key(0))                # doctest: +SKIP
    """

    algorithm: Algorithm
    networks: Any  # the `policy` of the algorithm's state
    standardisation: Standardisation
    action_box: ActionBox | None = eqx.field(static=True, default=None)  # of the data, where it was scaled

    @plain_method
    def act(self, observation: Array | np.ndarray, key: Array, best_of: int = 1) -> Array:
        """One action in [-1, 1] for one observation [observation], or one each for a batch of them and of keys."""
        if not isinstance(observation, jax.Array):
            observation = np.asarray(observation)
        if key.ndim == 0 and self.act_alone is not None:
            return self.act_alone(observation, key, best_of)
        return act_with(self, observation, key, best_of)

    @functools.cached_property
    def act_alone(self) -> Callable[[Array | np.ndarray, Array, int], Array] | None:
        """`act` for one observation with the weights as constants; None while the weights are being traced.

        Handing the weights over at every call would cost as much as the network itself.
        """
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(self)):
            return None
        return jax.jit(functools.partial(draw_action, self), static_argnums=2)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy compiles for itself."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def in_units_of_the_data(self, action: Array | np.ndarray) -> np.ndarray:
        """Actions in [-1, 1] as the robot takes them: in the box that the data's actions lived in."""
        return np.asarray(action) if self.action_box is None else self.action_box.from_unit(np.asarray(action))

    @classmethod
    def load(cls, folder: Path | str, seed: int | None = None, algorithm: type[Algorithm] | None = None) -> Self:
        """Read a folder of `policies/` in a run; `seed` chooses one of a run with several."""
        folder = Path(folder)
        try:
            metadata = read_metadata(folder)
            spec = Spec(tuple(metadata["observation_shape"]), metadata["action_size"])
            kind = algorithm or find_algorithm(metadata["algorithm"])
            built = kind.from_dict(metadata["hyperparameters"])
            seeds = tuple(metadata["seeds"])
            if seed is not None and seed not in seeds:
                raise InputError(f"seed {seed} is not in {folder}; it has {' '.join(map(str, seeds))}")

            def skeleton(key: Array) -> Any:
                return jax.vmap(lambda key: built.init(key, spec).policy)(jax.random.split(key, len(seeds)))

            like = (jax.eval_shape(skeleton, jax.random.key(0)), Standardisation.identity(spec))
            networks, standardisation = load_tree(folder, like)
        except KeyError as error:
            raise InputError(f"{folder} does not hold a policy; it lacks {error}") from error
        except DamagedCheckpoint as error:
            raise InputError(f"the policy in {folder} cannot be used: {error}") from error
        index = seeds.index(seed) if seed is not None else 0
        box = ActionBox(*map(tuple, metadata["action_box"])) if metadata.get("action_box") else None
        return cls(built, jax.tree.map(lambda leaf: leaf[index], networks), standardisation, box)


def draw_action(policy: Policy, observation: Array | np.ndarray, key: Array, best_of: int) -> Array:
    observation = policy.standardisation(jnp.asarray(observation, jnp.float32))
    return policy.algorithm.act(policy.networks, observation, key, best_of)


@eqx.filter_jit
def act_with(policy: Policy, observation: Array | np.ndarray, key: Array, best_of: int) -> Array:
    """An action for each observation and key, or for one; compiled once for all policies of the same shape."""
    if key.ndim == 0:
        return draw_action(policy, observation, key, best_of)
    return jax.vmap(lambda each, key: draw_action(policy, each, key, best_of))(observation, key)


def save_policies(
    folder: Path,
    algorithm: Algorithm,
    tree: tuple[Any, Standardisation],
    spec: Spec,
    seeds: tuple[int, ...],
    **metadata: Any,
) -> None:
    """Save the stacked policies of all seeds of a run."""
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
