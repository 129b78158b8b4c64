"""A process that trains a run together with the one that leads: the same updates, at its word, and nothing else."""

from drol.runs.config import RunConfig
from drol.tasks.base import Task
from drol.training.compiled import init_seeds, seed_keys, zero_totals
from drol.training.placement import Placement
from drol.training.preparation import prepare, standardise
from drol.training.updates import Updates

END = 0  # the leading process says it in place of a step


def follow(config: RunConfig, task: Task, placement: Placement) -> int:
    """Take part in every update until the leading process ends; the step it ended at.

    The metrics that this process adds up are never read.
    """
    algorithm, keys = config.algorithm, seed_keys(config.seeds)
    dataset = prepare(config, task.train, standardise(config, task.train))
    states = init_seeds(algorithm, keys, task.train.spec)
    updates = Updates(algorithm, dataset, keys, config.steps, placement)
    totals = zero_totals(algorithm, states, updates.in_memory, keys)
    step = placement.agree(0)
    states, totals = map(placement.put_seeds, placement.from_leader((states, totals)))
    while (last_step := placement.agree(END)) != END:
        states, totals = updates.run(states, totals, step + 1, last_step)
        step = last_step
    return step
