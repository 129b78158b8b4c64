"""Split a task's data into the held-out part, on which policies are tested, and the reference part."""

from drol.data.trajectories import LARGEST, Part, trajectories_of
from drol.errors import InputError
from drol.tasks.base import Task


def split(task: Task) -> tuple[Part, Part, bool]:
    """Return the reference part, the part to test on, and whether the latter was not used for training.

    Without validation data, the last tenth of the trajectories is tested against the others. A policy trained on all
    trajectories has then seen the tested part.
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
