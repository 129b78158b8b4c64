"""Draw actions of policies in some states over training, with owners of data actions and the critic, for a page."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from drol.data.trajectories import LARGEST, spread
from drol.evaluation.support import nearest
from drol.policy import Policy
from drol.reports.episode_paths import group_of, maze_picture, to_picture
from drol.reports.selected_runs import Found, Shown
from drol.runs.records import MetricsRow
from drol.runs.run import Run
from drol.tasks.base import Task

DRAWS = 16  # actions of a policy in a state
NEAR = 64  # data actions around a state
STATES, STEPS = 6, 9  # most on a page
GRID = 23  # points of the critic along each axis
COMPARED, COMPARED_BYTES = 100_000, 2**27  # most data states to search for neighbours, and their bytes
FRAME = 1.15  # half the side of the drawn square of actions
ROUTING = ("diagnostics/routed_bc_loss", "diagnostics/candidate_distance", "diagnostics/candidate_divergence")


class Plane(NamedTuple):
    """A projection of actions to two coordinates."""

    centre: np.ndarray  # [action]
    axes: np.ndarray  # [2, action], of length 1
    words: str  # explanation of the picture; empty if actions have two dimensions

    def see(self, actions: np.ndarray) -> np.ndarray:
        """Return the two coordinates [..., 2] of actions."""
        return (actions - self.centre) @ self.axes.T


def plane_of(near: np.ndarray) -> Plane:
    """Return the projection of actions: the identity in two dimensions, else the data's principal directions.

    Args:
        near: Data actions [N, action].
    """
    size = near.shape[-1]
    if size == 2:
        return Plane(np.zeros(2), np.eye(2), "")
    if size == 1:
        words = "Actions have one dimension, drawn from left to right; the height of a dot has no meaning."
        return Plane(np.zeros(1), np.asarray([[1.0], [0.0]]), words)
    centre = near.mean(0, dtype=np.float64)
    _, lengths, axes = np.linalg.svd(near - centre, full_matrices=False)
    axes = np.concatenate([axes, np.zeros((2, size))])[:2]
    axes *= np.where(axes[np.arange(2), np.abs(axes).argmax(1)] < 0, -1, 1)[:, None]  # the same signs in every report
    share = np.square(lengths[:2]).sum() / max(np.square(lengths).sum(), 1e-12)
    words = (
        f"Actions have {size} dimensions and are projected onto the two directions in which the data's actions near "
        f"these states vary most ({share:.0%} of their variance). Owners are computed in all dimensions; the "
        "critic is shown on the plane through the mean of those actions, so dots do not lie exactly on it."
    )
    return Plane(centre, axes, words)


@eqx.filter_jit
def draw_in(policy: Policy, states: Array, keys: Array) -> Array:
    """Return draws [states, draws, action] of a policy, with the same keys in every state."""
    return jax.vmap(lambda state: policy.draw_each(jnp.repeat(state[None], len(keys), 0), keys))(states)


@eqx.filter_jit
def value_in(policy: Policy, states: Array, points: Array) -> Array | None:
    """Return values [states, points] of the mean critic; None if the policy has no critic."""
    critics = policy.algorithm.critics(policy.networks)
    if critics is None:
        return None

    def values(state: Array) -> Array:
        observation = policy.standardisation(state)
        return critics(jnp.repeat(observation[None], len(points), 0), points).mean(0)

    return jax.vmap(values)(states)


def routes(metrics: Sequence[MetricsRow]) -> bool:
    """Return whether the method routes data to candidates, by its diagnostics."""
    return any(all(name in row.values for name in ROUTING) for row in metrics)


def states_on_the_way(paths: list[np.ndarray] | None, task: Task, count: int) -> list[np.ndarray]:
    """Return evenly spread states of the policy's episode of median length, or of the data without episodes."""
    if paths and task.train.spec.observation_size == 2:
        path = sorted(paths, key=len)[len(paths) // 2]
        return [path[int(share * (len(path) - 1))] for share in np.linspace(0.02, 0.88, count)]
    return [*np.asarray(task.train.take(jnp.asarray(spread(task.train.size, count))).observation)]


def actions_near(task: Task, states: np.ndarray) -> np.ndarray:
    """Return the actions [states, near, action] of the data states nearest to each state."""
    data = task.train.leading(LARGEST)
    most = max(1, min(COMPARED, COMPARED_BYTES // (4 * data.spec.observation_size)))
    taken = data.take(jnp.asarray(spread(data.size, most)))
    observation = np.asarray(taken.observation, np.float32).reshape(len(taken.action), -1)
    scale = observation.std(0) + 1e-6
    index = nearest(observation / scale, states.reshape(len(states), -1) / scale, NEAR)
    return np.asarray(taken.action)[index]


def actions_players(shown: Sequence[Shown], labels: Sequence[str], found: Found) -> list[dict[str, Any]]:
    """Return a player for each task: actions of the first seed of each run in the same states, over training."""
    by_task: dict[str, list[Shown]] = {}
    for each in shown:
        by_task.setdefault(each.run.config.task, []).append(each)
    players = [actions_player(own, labels, found) for own in by_task.values()]
    return [player for player in players if player is not None]


def actions_player(shown: Sequence[Shown], labels: Sequence[str], found: Found) -> dict[str, Any] | None:
    """Return the player of the runs on one task; None if no policy can be read."""
    task = found.task_of(shown[0].run)
    policies = {each.run.path: saved_policies(each.run, found) for each in shown} if task is not None else {}
    runs = [each for each in shown if policies.get(each.run.path)]
    if task is None or not runs:
        return None
    first, maze = runs[0].run, task.maze
    last = max(policies[first.path])
    paths = found.readable(lambda: first.directory.read_trajectories(last, first.config.seeds[0]))
    states = np.stack(states_on_the_way(paths, task, STATES)).astype(np.float32)
    near = actions_near(task, states)
    plane = plane_of(near.reshape(-1, near.shape[-1]))
    seen = plane.see(near)
    square = not plane.words
    entries = []
    for each in runs:
        entry = {"label": each.label, "group": group_of(each, labels), "steps": sorted(policies[each.run.path])}
        own = [policies[each.run.path][step] for step in entry["steps"]]
        entries.append(entry | drawn_actions(own, states, near, plane, routes(each.run.metrics)))
    every = np.concatenate([seen.reshape(-1, 2), *(entry["draws"].reshape(-1, 2) for entry in entries)])
    ends = (-1.0, 1.0, -1.0, 1.0) if square else ends_of(every)
    extent = (-FRAME, FRAME, -FRAME, FRAME) if square else ends
    for each, entry in zip(runs, entries, strict=True):
        entry["draws"] = packed(entry["draws"], ends)
        if (
            len(task.train.spec.observation_shape) == 1
        ):  # for images, evaluating the critic at each point would take minutes
            own = [policies[each.run.path][step] for step in entry["steps"]]
            entry["values"] = critic_values(own, states, grid_points(plane, ends).clip(-1, 1))
    titles = [f"{number} of {len(states)}" for number in range(1, len(states) + 1)]
    player = {
        "kind": "actions", "task": task.name, "words": plane.words, "box": square, "extent": extent, "ends": ends,
        "grid": GRID, "near": near.shape[1], "data": packed(seen, ends), "runs": entries,
        "states": [{"title": title} for title in titles],
    }  # fmt: skip
    if maze is not None:
        positions = to_picture(maze, states.reshape(len(states), -1)[:, :2]).tolist()
        pairs = zip(titles, positions, strict=True)
        player |= {"maze": maze_picture(maze), "states": [{"title": each, "position": at} for each, at in pairs]}
    return player


def saved_policies(run: Run, found: Found) -> dict[int, Policy]:
    """Return the policies of the first seed at some saved steps; record unreadable ones in `found`."""
    steps, seed = run.steps, run.config.seeds[0]
    loaded = {
        step: found.readable(lambda step=step: run.policy(step, seed))
        for step in (steps[index] for index in spread(len(steps), STEPS))
    }
    kept = {step: policy for step, policy in loaded.items() if policy is not None}
    if not kept:
        found.missing.append(f"no saved policy of {run.path.name} can be read, so its actions are not drawn")
    return kept


def drawn_actions(
    policies: Sequence[Policy], states: np.ndarray, near: np.ndarray, plane: Plane, routed: bool
) -> dict[str, Any]:
    """Return the projected draws of policies, and the index of the nearest draw to each data action."""
    keys = jax.random.split(jax.random.key(0), DRAWS if policies[0].algorithm.draws_actions else 1)
    drawn = [np.asarray(draw_in(policy, jnp.asarray(states), keys)) for policy in policies]  # [states, draws, action]
    found: dict[str, Any] = {"count": len(keys), "cells": routed and near.shape[-1] == 2}
    if routed:
        owners = [np.square(near[:, :, None] - each[:, None]).sum(-1).argmin(-1) for each in drawn]  # [states, near]
        found["owners"] = text_of(np.stack(owners).astype(np.uint8))
    return found | {"draws": np.stack([plane.see(each) for each in drawn])}


def critic_values(policies: Sequence[Policy], states: np.ndarray, points: np.ndarray) -> str | None:
    """Return the critic's values, scaled to one byte in each state; None without a critic."""
    values = []
    for policy in policies:
        found = value_in(policy, jnp.asarray(states), jnp.asarray(points, jnp.float32))
        if found is None:
            return None
        value = np.asarray(found, np.float64)
        low, high = value.min(-1, keepdims=True), value.max(-1, keepdims=True)
        values.append(np.nan_to_num(255 * (value - low) / np.maximum(high - low, 1e-12)).astype(np.uint8))
    return text_of(np.stack(values))


def ends_of(seen: np.ndarray) -> tuple[float, float, float, float]:
    """Return a square around coordinates [N, 2] with a margin: left, right, bottom, top."""
    low, high = np.nanmin(seen, 0), np.nanmax(seen, 0)
    middle, half = (low + high) / 2, 0.54 * float(np.max(high - low)) + 0.05
    left, right, bottom, top = middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half
    return float(left), float(right), float(bottom), float(top)


def grid_points(plane: Plane, ends: tuple[float, float, float, float]) -> np.ndarray:
    """Return actions [points, action] on the plane, row by row from the bottom."""
    left, right, bottom, top = ends
    x, y = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    return plane.centre + np.stack([x, y], -1).reshape(-1, 2) @ plane.axes


def packed(seen: np.ndarray, ends: tuple[float, float, float, float]) -> str:
    """Return coordinates [..., 2] within a frame as 16 bits each."""
    left, right, bottom, top = ends
    low, high = np.asarray([left, bottom]), np.asarray([right, top])
    share = np.nan_to_num((seen - low) / (high - low)).clip(0, 1)
    return text_of((share * 65534 - 32767).round().astype("<i2"))


def text_of(array: np.ndarray) -> str:
    """Return the bytes of an array as text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
