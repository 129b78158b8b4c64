"""The values that pass between the parts: a batch, the sizes of a task, the metrics of an update."""

import math

import equinox as eqx
from jax import Array

Metrics = dict[str, Array]


class Transition(eqx.Module):
    """A batch of transitions, each field with the batch as its first axis."""

    observation: Array  # [batch, *observation]
    action: Array  # [batch, action], in (-1, 1)
    reward: Array  # [batch]
    continues: Array  # [batch], 0 where the task ended and nothing follows, else 1
    next_observation: Array  # [batch, *observation]
    next_action: Array  # [batch, action], the action taken at next_observation
    next_action_known: Array  # [batch], 0 where the episode stopped before next_action was taken


class Spec(eqx.Module):
    """Everything an algorithm may know of a task."""

    observation_shape: tuple[int, ...] = eqx.field(static=True)
    action_size: int = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        return math.prod(self.observation_shape)
