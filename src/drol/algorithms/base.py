"""The contract of an algorithm: constant hyperparameters, and pure functions of states, batches and keys.

Each algorithm writes `init`, `update` and `act`, and `sampler` if it is to be exported. `explore`, `critics` and
`diagnose` have defaults that suit most algorithms.

An algorithm is one file that defines its `Policy`, `State` and `Draws`. A method that extends another one, as GFP
extends FQL, imports those of the three that are exactly the same from the file of the other. Methods that are alike by
chance do not import from each other.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
from jax import Array

from drol.bounds import LARGEST, bounds, check_field
from drol.errors import InputError, unknown_name
from drol.networks.sampler import Sampler
from drol.transition import Metrics, Spec, Transition

# What the preset "laptop" of most algorithms is: networks that a laptop trains in minutes, and rates that suit them.
SMALL: Mapping[str, Any] = {"hidden_sizes": (128, 128, 128), "learning_rate": 1e-3, "target_rate": 0.02}


def hyperparameter(
    default: Any,
    description: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """Return a field of an algorithm: its default, the help text of its flag, and what it may be.

    Args:
        default: The default; its type is the type of the field. Floats are traced, so a new value does not compile
            again; everything else is a constant of the compiled program.
        description: The help text.
        minimum: The smallest number that is allowed; of a tuple, for each entry.
        maximum: The largest.
        choices: All values that are allowed.

    Returns:
        The field, for the body of a class that derives from `drol.Algorithm`.
    """
    metadata = bounds(description, minimum, maximum, choices)
    if isinstance(default, float):
        return eqx.field(default=default, converter=as_float, metadata=metadata)
    return eqx.field(default=default, static=True, metadata=metadata)


def as_float(value: Any) -> Any:
    """Turn a whole number into a float, so that 1 and 1.0 are the same run; leave anything else as it is."""
    return float(value) if type(value) is int and abs(value) < LARGEST else value


class Algorithm(eqx.Module):
    """Hyperparameters, and the functions that train and act.

    The algorithms of this package derive from this class alone and declare all of their fields, so that each of them is
    complete on one page. Your own may derive from one of them, to change a default or to replace a loss.

    The state that `init` makes and `update` changes is a tree of arrays. Its `policy` is the part that `act` needs.
    """

    draws_actions: ClassVar[bool] = True  # whether two actions for one observation differ
    acting: ClassVar[tuple[str, ...]] = ()  # hyperparameters of `act` that an evaluation may change
    choosing: ClassVar[tuple[str, ...]] = ()  # those that matter only if the best of several draws acts
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # name of a preset -> hyperparameters that differ
    removed: ClassVar[Mapping[str, Any]] = {}  # hyperparameters that earlier run folders have -> their only known value

    batch_size: eqx.AbstractVar[int]  # transitions that an update takes

    @property
    def default_best_of(self) -> int:
        """Return how many actions `act` draws, of which the best one acts, by default."""
        return 1

    @abc.abstractmethod
    def init(self, key: Array, spec: Spec) -> Any:
        """Return the state before the first update."""

    @abc.abstractmethod
    def update(self, state: Any, batch: Transition, key: Array) -> tuple[Any, Metrics]:
        """Return the state after one update on one batch, and the metrics of that update."""

    @abc.abstractmethod
    def act(self, policy: Any, observation: Array, key: Array, best_of: int | None = None) -> Array:
        """Return one action in [-1, 1] for one observation.

        Args:
            policy: The `policy` of a state.
            observation: One observation, without a batch axis.
            key: The random key of the draw; a deterministic policy ignores it.
            best_of: The number of actions to draw; the one with the highest value is returned. None is the
                algorithm's own number. Each algorithm passes it through `check_act`, with the observation.
        """

    def explore(self, policy: Any, observation: Array, key: Array) -> Array:
        """Return the action to take while training in an environment; a policy that draws nothing adds noise here."""
        return self.act(policy, observation, key)

    def sampler(self, policy: Any) -> Sampler:  # noqa: ARG002
        """Return how `act` works as plain steps, which is what `drol export` writes."""
        raise InputError(f"{type(self).__name__} cannot be exported; its class must define `sampler`")

    def critics(self, policy: Any) -> Callable[[Array, Array], Array] | None:
        """Return the critics that a policy carries, or None if it carries none.

        This is the only way to them for code outside the algorithm: how a policy stores its critics, and what else they
        are told, is its own affair. They are a function of observations [..., *observation] and actions [..., action]
        and return values [ensemble, ...].
        """
        return getattr(policy, "critic", None)

    def diagnose(self, state: Any, batch: Transition, key: Array) -> Metrics:  # noqa: ARG002
        """Return figures that no update needs, computed on one batch when metrics are logged."""
        return {}

    def check_best_of(self, best_of: int | None) -> int:
        """Return how many actions `act` has to draw; refuse a number that this algorithm cannot use."""
        if best_of is None:
            return self.default_best_of
        if not isinstance(best_of, int) or isinstance(best_of, bool) or best_of < 1:
            raise InputError(f"best_of is {best_of!r}; it must be a whole number, at least 1")
        if best_of > 1 and not self.draws_actions:
            raise InputError(
                f"best_of is {best_of}, but {type(self).__name__} has one action for each observation; it must be 1"
            )
        return best_of

    def check_act(self, observation: Array, best_of: int | None) -> int:
        """Return how many actions `act` has to draw for one observation; refuse a batch of observations."""
        if observation.ndim not in (1, 3):  # a vector or an image
            raise InputError(
                f"the observation has shape {list(observation.shape)}; act takes one observation, so use jax.vmap for "
                "a batch, or the act of a drol.Policy"
            )
        return self.check_best_of(best_of)

    def acting_with(self, changes: Mapping[str, Any]) -> Self:
        """Return the algorithm with other values of hyperparameters that only `act` depends on; refuse all others."""
        for name in changes:
            if name not in self.acting:
                allowed = f"only {', '.join(self.acting)}" if self.acting else "nothing"
                kind = type(self).__name__
                raise InputError(f"{name} is given; of the hyperparameters of {kind} evaluations may change {allowed}")
        return dataclasses.replace(self, **changes)

    def __check_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_field(field, getattr(self, field.name))

    def to_dict(self) -> dict[str, Any]:
        """Return all hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the algorithm with these hyperparameters, as read from JSON; refuse names that it does not have."""
        names = [field.name for field in dataclasses.fields(cls)]
        values = {name: v for name, v in values.items() if name not in cls.removed or v != cls.removed[name]}
        for name in values:
            if name not in names:
                raise unknown_name(f"hyperparameter of {cls.__name__}", name, names)
        built: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**built)
