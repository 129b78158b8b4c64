"""Values that modules exchange: a batch, the sizes of a task, the metrics of an update."""

import math

import equinox as eqx
from jax import Array

Metrics = dict[str, Array]


class Transition(eqx.Module):
    """A batch of transitions, each field with the batch as its first axis.

    Attributes:
        observation: [batch, *observation]
        action: [batch, action], in (-1, 1)
        reward: [batch]
        continues: [batch], `1 - terminal`: 0 where the task ended, else 1
        next_observation: [batch, *observation]
        next_action: [batch, action], the action taken at `next_observation`
        next_action_known: [batch], 0 where the episode stopped before `next_action` was taken

    Example:
        One update in a training loop of your own:

        >>> import drol, jax
        >>> data = drol.load_task("pointmaze-medium-navigate-singletask-task1-v0").train
        >>> algorithm = drol.DROL(hidden_sizes=(32, 32))
        >>> state = algorithm.init(jax.random.key(0), data.spec)
        >>> batch = data.sample(jax.random.key(1), algorithm.batch_size)
        >>> batch.action.shape
        (256, 2)
        >>> state, metrics = jax.jit(algorithm.update)(state, batch, jax.random.key(2))
        >>> sorted(metrics)[:2]
        ['actor_loss', 'actor_q']
    """

    observation: Array
    action: Array
    reward: Array
    continues: Array
    next_observation: Array
    next_action: Array
    next_action_known: Array


class Spec(eqx.Module):
    """Everything an algorithm may know of a task.

    Attributes:
        observation_shape: [size] for vectors, [height, width, channels] for images
        action_size: number of dimensions of an action

    Example:
        >>> import drol
        >>> drol.Spec((4,), 2).observation_size
        4
    """

    observation_shape: tuple[int, ...] = eqx.field(static=True)
    action_size: int = eqx.field(static=True)

    @property
    def observation_size(self) -> int:
        """The number of values of one observation."""
        return math.prod(self.observation_shape)
