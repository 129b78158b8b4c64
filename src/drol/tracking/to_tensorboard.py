"""Write rows as TensorBoard event files with tensorboardX; view: `tensorboard --logdir RUN/tracking/tensorboard`."""

from pathlib import Path

from tensorboardX import SummaryWriter

from drol.runs.directory import RunDirectory


class TensorBoard:
    """Write event files; a resumed run adds a file."""

    def __init__(self, folder: Path):
        self.writer = SummaryWriter(str(folder))

    def write(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def flush(self) -> None:
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


def open_mirror(_: RunDirectory, folder: Path, identity: str) -> TensorBoard:
    """Return the mirror of a run."""
    return TensorBoard(folder / "events" / identity)
