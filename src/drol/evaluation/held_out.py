"""The part of a task's data that policies are tested on without a simulator, and the part it is compared with."""

from drol.data.trajectories import LARGEST, Part, trajectories_of
from drol.errors import InputError
from drol.tasks.base import Task


def split(task: Task) -> tuple[Part, Part, bool]:
    """Return the part to compare with, the part to test on, and whether no update saw the latter.

    Without validation data the last tenth of the trajectories is tested against the others; a policy that was
    trained on all of them has then seen what it is tested on.
    """
    dataset = task.train.leading(LARGEST)
    train = trajectories_of(dataset)
    count = len(train.first)
    if task.validation is not None:
        held_out = task.validation.leading(LARGEST)
        validation = trajectories_of(held_out)
        return Part(dataset, train, 0, count), Part(held_out, validation, 0, len(validation.first)), True
    if count < 2:
        raise InputError(
            f"the data of {task.name} is one trajectory without validation data; offline evaluation needs two"
        )
    cut = count - max(1, count // 10)
    return Part(dataset, train, 0, cut), Part(dataset, train, cut, count), False
