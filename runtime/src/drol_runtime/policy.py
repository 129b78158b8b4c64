"""A policy for a robot: check observations and compute actions in the robot's units, with preallocated buffers."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drol_runtime.bundle import TESTS, Bundle, InputError, read_bundle
from drol_runtime.networks import MINUS_ONE, ONE, Network, copy_columns

Array = Any  # np.ndarray; the type names of the supported NumPy versions differ


def load(folder: str | Path, clamp: bool = False, seed: int | None = None) -> Policy:
    """Load a policy from `drol export`.

    Args:
        folder: The bundle.
        clamp: Whether to clip observations to the range of the data before the policy sees them.
        seed: The seed of the sequence of random draws; if None, each load has another sequence.
    """
    return Policy(read_bundle(folder), clamp, seed)


def check(folder: str | Path) -> float:
    """Act on the stored observations with the stored latents; return the largest difference to the trained policy.

    Args:
        folder: The bundle. `InputError` is raised if its stored actions are not finite or have another shape.
    """
    bundle = read_bundle(folder)
    tests = bundle.tests()
    found, stored = Policy(bundle, False, 0).act(tests["observation"], latent=tests["latent"]), tests["action"]
    if stored.shape != found.shape or not np.isfinite(stored).all():
        raise InputError(
            f"{bundle.folder / TESTS}: the stored actions must be finite, of shape {list(found.shape)}; export the "
            "policy again"
        )
    return float(np.abs(found - stored).max())


class Policy:
    """A policy for observations in the units of the robot.

    Attributes:
        description: The description in the bundle: names, units, ranges, the method and its settings.
        control_rate: Actions per second in the data; None if unknown.
        outside: The number of observations so far that had a value outside the range of the data.
    """

    def __init__(self, bundle: Bundle, clamp: bool = False, seed: int | None = None):
        self.description = bundle.description
        self.clamp, self.outside = clamp, 0
        self.control_rate: float | None = self.description.get("control_rate")
        observation, action, sampler = (self.description[name] for name in ("observation", "action", "sampler"))
        self.observation_names, self.action_names = observation["names"], action["names"]
        self.observation_size, self.action_size = observation["size"], action["size"]
        self.best_of, self.prior, self.steps = sampler["best_of"], sampler["prior"], sampler["steps"]
        self.networks = {name: Network(bundle.weights, name, shape) for name, shape in sampler["networks"].items()}
        self.critics = Network(bundle.weights, "critics", sampler["critics"]) if sampler["critics"] else None
        self.critic_conditions, self.aggregation = sampler["critic_conditions"], sampler["aggregation"]
        self.mean, self.deviation = (bundle.weights[f"observation/{name}"] for name in ("mean", "deviation"))
        self.low, self.high = (np.asarray(observation[name], np.float32) for name in ("low", "high"))
        low, high = (np.asarray(action[name], np.float64) for name in ("low", "high"))
        self.centre, self.half = (low + high) / 2, (high - low) / 2
        self.seeds = np.random.SeedSequence(seed)
        self.lock, self.local = threading.Lock(), threading.local()

    def act(self, observation: Any, seed: int | None = None, latent: Any = None, out: Array | None = None) -> Array:
        """Return an action in the robot's units.

        Args:
            observation: One observation, a batch of them along a first axis, or one as a mapping of names to numbers.
            seed: The same seed gives the same action. If None, each call uses new random numbers, so that a policy
                with several modes uses all of them; `load(..., seed=...)` makes the sequence repeatable.
            latent: Used instead of a random draw: [action] or [best_of, action]; for a batch, [batch, best_of, action].
            out: A float32 array for the action, so that no new array is allocated.

        Returns:
            One action [action], or one for each observation of a batch [batch, action].
        """
        values = self.check_observation(observation)
        single = values.ndim == 1
        space = self.workspace(1 if single else len(values))
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
            self.take_observation(values, space)
            self.take_latent(seed, latent, space)
            self.run(space)
            np.multiply(space.action, self.half, out=space.scaled)  # [rows, action]; `space.action` is in [-1, 1]
            np.add(space.scaled, self.centre, out=space.result)
            if not is_finite(space.result):
                raise InputError(
                    "the action is not finite: the observation or the latent is too large for the networks; "
                    "give values as in the data"
                )
        action = space.result[0] if single else space.result
        result = np.empty(action.shape, np.float32) if out is None else out
        if not isinstance(result, np.ndarray) or result.shape != action.shape or result.dtype != np.float32:
            shown = f"{result.dtype}{list(result.shape)}" if isinstance(result, np.ndarray) else type(result).__name__
            raise InputError(f"out is {shown}; it must be an array of float32{list(action.shape)}")
        if not result.flags.writeable:
            raise InputError("out is read-only; give an array that can be written")
        np.copyto(result, action)
        self.count_outside(space)
        return result

    def check_observation(self, observation: Any) -> Array:
        """Return an observation, or a batch of them, as an array; reject other shapes and non-numeric values."""
        values = self.named(observation) if isinstance(observation, Mapping) else as_array(observation)
        if values.ndim not in (1, 2) or values.shape[-1] != self.observation_size or len(values) == 0:
            raise InputError(
                f"the observation has shape {list(values.shape)}; this policy takes [{self.observation_size}], "
                "or a batch of such"
            )
        if values.dtype.kind not in "fiub":
            raise InputError(f"the observation has type {values.dtype}; it must be numbers")
        return values

    def latents(self, rows: int, seed: int | None = None, latent: Any = None) -> Array:
        """Return the latents [rows, best_of, action] that `act` would use for `rows` observations, in a new array."""
        space = self.workspace(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            self.take_latent(seed, latent, space)
        return space.latent.copy()

    def named(self, observation: Mapping[str, Any]) -> Array:
        """Return an observation as an array, given a mapping by name."""
        if self.observation_names is None:
            raise InputError("this policy knows no names of observations; give the numbers in the order of the data")
        odd = [name for name in observation if name not in self.observation_names]
        odd += [name for name in self.observation_names if name not in observation]
        if odd:
            raise InputError(
                f"the observation {'has an unknown' if odd[0] in observation else 'lacks the'} name {str(odd[0])!r}; "
                f"this policy takes {', '.join(self.observation_names)}"
            )
        values = [as_array(observation[name]) for name in self.observation_names]
        try:
            return np.stack(values, -1)
        except ValueError as error:
            raise InputError("the named values have different shapes; each must be a number") from error

    def workspace(self, rows: int) -> Workspace:
        """Return the buffers of this thread for `rows` observations."""
        found = getattr(self.local, "spaces", None)
        if found is None:
            with self.lock:
                child = self.seeds.spawn(1)[0]
            found = self.local.spaces = {}
            self.local.generator = np.random.Generator(np.random.PCG64(child))
        if rows not in found:
            if len(found) >= 8:  # limit the memory of buffers for batch sizes that no longer occur
                found.clear()
            found[rows] = Workspace(self, rows)
        return found[rows]

    def take_observation(self, values: Array, space: Workspace) -> None:
        """Copy observations into the buffers, check and standardise them."""
        np.copyto(space.observation, values, casting="unsafe")
        check_finite(space.observation, "observation")
        np.minimum(space.observation, self.high, out=space.clamped)
        np.maximum(space.clamped, self.low, out=space.clamped)
        np.not_equal(space.observation, space.clamped, out=space.flags)
        state = space.clamped if self.clamp else space.observation
        np.subtract(state, self.mean, out=space.state)
        np.divide(space.state, self.deviation, out=space.state)

    def count_outside(self, space: Workspace) -> None:
        """Count the observations that had a value outside the range of the data."""
        if np.logical_or.reduce(space.flags, None):
            count = int(space.flags.any(1).sum())
            with self.lock:
                self.outside += count

    def take_latent(self, seed: int | None, latent: Any, space: Workspace) -> None:
        """Write the given latents, or a random draw, into the buffers."""
        if self.prior == "none":
            return
        if latent is not None:
            given = as_array(latent)
            if given.dtype.kind not in "fiub":
                raise InputError(f"the latent has type {given.dtype}; it must be numbers")
            if given.size != space.latent.size or given.shape[-1:] != (self.action_size,):
                raise InputError(
                    f"latent has shape {list(given.shape)}; it must be {list(space.latent.shape)} for this observation"
                )
            np.copyto(space.latent, given.reshape(space.latent.shape), casting="unsafe")
            check_finite(space.latent, "latent")
            return
        if seed is not None and (type(seed) is not int or seed < 0):
            raise InputError(f"seed is {seed!r}; it must be a whole number from 0")
        generator = self.local.generator if seed is None else np.random.Generator(np.random.PCG64(seed))
        generator.standard_normal(dtype=np.float32, out=space.normal)
        if self.prior == "ball":  # the first coordinates of a uniform point on the sphere in two more dimensions
            np.multiply(space.normal, space.normal, out=space.squares)
            np.add.reduce(space.squares, axis=-1, out=space.length, keepdims=True)
            np.sqrt(space.length, out=space.length)
            np.divide(space.normal[..., : self.action_size], space.length, out=space.latent)
            np.multiply(space.latent, np.float32(math.sqrt(self.action_size)), out=space.latent)

    def run(self, space: Workspace) -> None:
        """Run the steps of the policy; of several draws for an observation, keep the one with the highest value."""
        count, size = self.best_of, self.action_size
        x = space.x  # [observations * best_of, action]
        np.copyto(x, space.latent.reshape(-1, size))
        repeated = space.state if count == 1 else np.repeat(space.state, count, axis=0)
        for step in self.steps:
            if step == "clip":
                np.minimum(x, ONE, out=x)
                np.maximum(x, MINUS_ONE, out=x)
            elif step == "tanh":
                np.tanh(x, out=x)
            else:
                buffers = space.buffers[step["network"]]
                copy_columns(buffers.input, repeated, x if step["sees_action"] else None, step["conditions"])
                output = self.networks[step["network"]](buffers)[0]
                if step["scale"] is None:
                    np.copyto(x, output)
                else:
                    np.multiply(output, np.float32(step["scale"]), out=output)
                    np.add(x, output, out=x)
        if count == 1 or self.critics is None:
            np.copyto(space.action, x)
            return
        buffers = space.buffers["critics"]
        copy_columns(buffers.input, repeated, x, self.critic_conditions)
        values = self.critics(buffers)[:, :, 0]  # [members, observations * best_of]
        value = values.min(0) if self.aggregation == "min" else values.mean(0)
        best = value.reshape(-1, count).argmax(1)
        np.copyto(space.action, x.reshape(-1, count, size)[np.arange(len(best)), best])


def as_array(values: Any) -> Array:
    """Convert values to an array; reject lists of different lengths, and masked arrays, whose mask would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError("the values are a masked array; decide what a masked value means and give a plain array")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError("the lists of numbers have different lengths; all rows must have the same length") from error


def check_finite(values: Array, what: str) -> None:
    """Raise `InputError` unless all float32 numbers are finite."""
    if not is_finite(values):
        raise InputError(f"the {what} has values that are NaN, infinite or too large; all must be finite")


def is_finite(values: Array) -> bool:
    """Return whether all numbers are finite.

    A finite sum of squares implies this and is faster to compute. For huge numbers it overflows, so each is checked.
    """
    return math.isfinite(np.vdot(values, values)) or bool(np.isfinite(values).all())


class Workspace:
    """The buffers for a number of observations."""

    def __init__(self, policy: Policy, rows: int):
        size, count = policy.action_size, policy.best_of
        self.observation = np.empty((rows, policy.observation_size), np.float32)
        self.clamped, self.state = np.empty_like(self.observation), np.empty_like(self.observation)
        self.flags = np.empty(self.observation.shape, bool)
        self.normal = np.empty((rows, count, size + 2 * (policy.prior == "ball")), np.float32)
        self.squares = np.empty_like(self.normal)
        self.length = np.empty((rows, count, 1), np.float32)
        self.latent = np.zeros((rows, count, size), np.float32) if policy.prior != "normal" else self.normal
        self.x = np.empty((rows * count, size), np.float32)
        self.action = np.empty((rows, size), np.float32)
        self.scaled = np.empty((rows, size), np.float64)
        self.result = np.empty((rows, size), np.float32)
        self.buffers = {name: network.buffers(rows * count) for name, network in policy.networks.items()}
        if policy.critics is not None:
            self.buffers["critics"] = policy.critics.buffers(rows * count)
