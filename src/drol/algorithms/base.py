"""The interface of an algorithm: constant hyperparameters, and pure functions of states, batches and keys.

Each algorithm writes `init`, `update` and `act`, and `sampler` if it is to be exported. `explore`, `critics` and
`diagnose` have defaults that suit most algorithms.

An algorithm is one file that defines its `Policy`, `State` and `Draws`. A method that extends another method, as GFP
extends FQL, imports the classes that are identical from the other method's file. Methods that only happen to have
similar classes do not import from each other.
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

# The preset "laptop" of most algorithms: networks that a laptop trains in minutes, and suitable learning rates.
SMALL: Mapping[str, Any] = {"hidden_sizes": (128, 128, 128), "learning_rate": 1e-3, "target_rate": 0.02}


def hyperparameter(
    default: Any,
    description: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """Return a field of an algorithm with its default, the help text of its flag, and its limits or choices.

    docs/extend.md has an example.

    Args:
        default: The default; its type is the type of the field. Floats are traced, so a new value does not compile
            again; everything else is a constant of the compiled program.
        description: The help text.
        minimum: The smallest allowed number; for a tuple, of each entry.
        maximum: The largest allowed number.
        choices: All allowed values.

    Returns:
        The field, for the body of a class that derives from `drol.Algorithm`.
    """
    metadata = bounds(description, minimum, maximum, choices)
    if isinstance(default, float):
        return eqx.field(default=default, converter=as_float, metadata=metadata)
    return eqx.field(default=default, static=True, metadata=metadata)


def as_float(value: Any) -> Any:
    """Convert an integer to a float, so that 1 and 1.0 give the same run; return other values unchanged."""
    return float(value) if type(value) is int and abs(value) < LARGEST else value


class Algorithm(eqx.Module):
    """Hyperparameters, and the functions that train and act. docs/extend.md explains how to write an algorithm.

    The algorithms of this package derive directly from this class and declare all of their fields, so that each file is
    complete. Your algorithm may derive from one of them, to change a default or to replace a loss.

    The state that `init` makes and `update` changes is a tree of arrays. Its `policy` is the part that `act` needs.
    """

    draws_actions: ClassVar[bool] = True  # whether two actions for one observation differ
    acting: ClassVar[tuple[str, ...]] = ()  # hyperparameters of `act` that an evaluation may change
    choosing: ClassVar[tuple[str, ...]] = ()  # hyperparameters that matter only if the critic chooses among draws
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # name of a preset -> hyperparameters that differ
    removed: ClassVar[Mapping[str, Any]] = {}  # hyperparameters that earlier run folders have -> their only known value

    batch_size: eqx.AbstractVar[int]  # transitions that an update takes

    @property
    def default_best_of(self) -> int:
        """Return the number of actions that `act` draws by default; the critic chooses the best of them."""
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
            best_of: The number of actions to draw, from which the critic chooses the best; `default_best_of` if None.
                Each algorithm calls `check_act` with this number and the observation.
        """

    def explore(self, policy: Any, observation: Array, key: Array) -> Array:
        """Return the action to take while training in an environment; a deterministic policy adds noise here."""
        return self.act(policy, observation, key)

    def sampler(self, policy: Any) -> Sampler:  # noqa: ARG002
        """Return the computation of `act` as plain steps, which `drol export` writes."""
        raise InputError(f"{type(self).__name__} cannot be exported; its class must define `sampler`")

    def critics(self, policy: Any) -> Callable[[Array, Array], Array] | None:
        """Return the critics of a policy, or None if it has no critics.

        The critics are a function of observations [..., *observation] and actions [..., action] that returns values
        [ensemble, ...]. Code outside the algorithm must call this method, because policies store their critics
        differently and some critics need further inputs.
        """
        return getattr(policy, "critic", None)

    def diagnose(self, state: Any, batch: Transition, key: Array) -> Metrics:  # noqa: ARG002
        """Return diagnostics on one batch; they are computed only when metrics are logged."""
        return {}

    def check_best_of(self, best_of: int | None) -> int:
        """Return the number of actions that `act` draws; reject a number that this algorithm cannot use."""
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
        """Return the number of actions that `act` draws for one observation; reject a batch of observations."""
        if observation.ndim not in (1, 3):  # a vector or an image
            raise InputError(
                f"the observation has shape {list(observation.shape)}; act takes one observation, so use jax.vmap for "
                "a batch, or the act of a drol.Policy"
            )
        return self.check_best_of(best_of)

    def acting_with(self, changes: Mapping[str, Any]) -> Self:
        """Return the algorithm with changed hyperparameters; only the hyperparameters in `acting` may change."""
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
        """Return the algorithm with these hyperparameters, as read from JSON; reject names that it does not have."""
        names = [field.name for field in dataclasses.fields(cls)]
        values = {name: v for name, v in values.items() if name not in cls.removed or v != cls.removed[name]}
        for name in values:
            if name not in names:
                raise unknown_name(f"hyperparameter of {cls.__name__}", name, names)
        built: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**built)
