"""The steps of a file in the order of time, episode by episode."""

from collections.abc import Iterator

import numpy as np

from drol.data.files.fields import StepFile
from drol.data.files.rules.clock import to_time
from drol.data.rows import Arrays
from drol.errors import InputError
from drol.machine import bytes_in_words, free_memory

PIECE_STEPS = 1 << 16


def sorted_blocks(file: StepFile) -> Iterator[tuple[Arrays, float]]:
    """Yield the blocks of a file sorted by episode, in the order in which they first occur, and within it by time.

    The whole file is held in memory.
    """
    if "time" not in file.chosen:
        raise InputError(f"{file.path} has no time to sort by; name it with --time")
    free = free_memory()
    if free is not None and 3 * file.nbytes > free:
        raise InputError(
            f"{file.path} holds {bytes_in_words(file.nbytes)}; to sort them takes three times as much memory, and "
            f"{bytes_in_words(free)} are free; sort the file before"
        )
    blocks = [block for block, _ in file.blocks() if len(block["action"])]
    if not blocks:
        return
    steps = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    time = to_time(file.names["time"], steps["time"].reshape(-1))
    keys: list[np.ndarray] = [time]
    if "episode" in steps:
        _, first, number = np.unique(steps["episode"].reshape(-1), return_index=True, return_inverse=True)
        keys.append(np.argsort(np.argsort(first))[number])  # episodes by the row in which they first occur
    order = np.lexsort(keys)
    for begin in range(0, len(order), PIECE_STEPS):
        part = order[begin : begin + PIECE_STEPS]
        yield {name: array[part] for name, array in steps.items()}, min(1.0, (begin + len(part)) / len(order))
