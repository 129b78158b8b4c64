"""What every algorithm is: hyperparameters that never change, and three pure functions."""

import abc
import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
from jax import Array

from drol.errors import InputError
from drol.types import Metrics, Spec, Transition


def hyperparameter(
    default: Any,
    description: str,
    minimum: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """A field of an algorithm: its default, the help text of its flag, and what it may be.

    Floats are traced, so a new value does not compile again; everything else is a constant of the compiled program.
    """
    metadata = {"description": description, "minimum": minimum, "choices": choices}
    if isinstance(default, float):  # a whole number is turned into a float, so that 1 and 1.0 are the same run
        return eqx.field(
            default=default, converter=lambda value: float(value) if type(value) is int else value, metadata=metadata
        )
    return eqx.field(default=default, static=True, metadata=metadata)


class Algorithm(eqx.Module):
    """Hyperparameters and `init`, `update`, `act`; a subclass is final and declares all of its fields itself."""

    draws_actions: ClassVar[bool] = True  # whether two actions for one observation differ, so that best-of-N has sense
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # name of a preset -> hyperparameters that differ

    batch_size: eqx.AbstractVar[int]  # transitions that an update takes

    @property
    def half_precision(self) -> bool:
        """Whether a part of the update multiplies in half precision; it is compiled for that then."""
        return False

    @abc.abstractmethod
    def init(self, key: Array, spec: Spec) -> Any:
        """The state before the first update; its `policy` is the part that `act` needs."""

    @abc.abstractmethod
    def update(self, state: Any, batch: Transition, key: Array) -> tuple[Any, Metrics]:
        """One update on one batch."""

    @abc.abstractmethod
    def act(self, policy: Any, observation: Array, key: Array, best_of: int = 1) -> Array:
        """One action in [-1, 1] for one observation; with `best_of` N, the best of N draws by the critic."""

    def explore(self, policy: Any, observation: Array, key: Array) -> Array:
        """The action to take while training in an environment; a policy that draws nothing adds noise here."""
        return self.act(policy, observation, key)

    def critics(self, policy: Any) -> Callable[[Array, Array], Array] | None:
        """The `Q_j(s, a)` [ensemble, ...] that the policy carries, as functions of state and action; None if none."""
        return getattr(policy, "critic", None)

    def diagnose(self, state: Any, batch: Transition, key: Array) -> Metrics:  # noqa: ARG002
        """Figures that no update needs, computed on one batch when metrics are logged."""
        return {}

    def __check_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_hyperparameter(field, getattr(self, field.name))

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The algorithm with these hyperparameters, as read from JSON; refuses names it does not have."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                nearest = difflib.get_close_matches(name, names, 1)
                hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(names)}"
                raise InputError(f"{cls.__name__} has no hyperparameter {name!r}; {hint}")
        built: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**built)


def check_hyperparameter(field: dataclasses.Field, value: Any) -> None:
    """Refuse a value of the wrong type, below the minimum or outside the choices of its field."""
    kind = type(field.default)
    allowed_types = (int, float) if kind is float else kind
    if not isinstance(value, allowed_types) or (kind is not bool and isinstance(value, bool)):
        raise InputError(f"{field.name} is {value!r}; it must be of type {kind.__name__}")
    choices, minimum = field.metadata["choices"], field.metadata["minimum"]
    if choices is not None and value not in choices:
        raise InputError(f"{field.name} is {value!r}; it must be one of {', '.join(map(str, choices))}")
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(value, tuple) and type(number) is not int:
            raise InputError(f"{field.name} is {value!r}; it must hold whole numbers")
        if minimum is not None and not number >= minimum:
            raise InputError(f"{field.name} is {value!r}; it must be at least {minimum}")
    if value == ():
        raise InputError(f"{field.name} is empty; it must hold at least one number")
