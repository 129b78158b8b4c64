"""Mirrors of a run's rows in trackers: a process of its own follows the files, so that no tracker can stop the run."""

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator

from drol.errors import InputError, plain, unknown_name
from drol.runs.directory import RunDirectory

PACKAGES = {"wandb": "wandb", "tensorboard": "tensorboardX", "trackio": "trackio"}  # what each tracker needs
FINISH_SECONDS = 60.0  # that a mirror gets to write the last rows
STOP_SECONDS = 5.0  # the same after a signal; what is missing comes with the next start


def check_tracker(name: str) -> None:
    """Refuse a tracker that is not known or not installed.

    Args:
        name: "wandb", "tensorboard" or "trackio".
    """
    if name not in PACKAGES:
        raise unknown_name("tracker", name, PACKAGES)
    if importlib.util.find_spec(PACKAGES[name]) is None:
        raise InputError(f"the tracker {name} needs {PACKAGES[name]}; install it with: pip install 'drol[{name}]'")


@contextlib.contextmanager
def mirrored(
    directory: RunDirectory, tracker: str | None, warn: Callable[[str], None], hurried: Callable[[], bool]
) -> Iterator[None]:
    """Let a tracker follow a run while it goes on; whatever goes wrong there is one warning.

    Args:
        directory: The run, which exists.
        tracker: The tracker; None: nothing follows.
        warn: Called with what went wrong.
        hurried: Asked at the end; True: somebody waits for the run to end.
    """
    if tracker is None:
        yield
        return
    folder = directory.tracking / tracker
    log = folder / "log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:  # its input ends when this process closes it, or ends however it does
            command = [sys.executable, "-m", "drol.tracking.follow", str(directory.path), tracker]
            streams = {"stdin": subprocess.PIPE, "stdout": output, "stderr": output}
            process = subprocess.Popen(command, start_new_session=True, **streams)
    except OSError as error:
        warn(f"{tracker} does not follow this run ({error}); its own files are complete")
        yield
        return
    try:
        yield
    finally:
        seconds = STOP_SECONDS if hurried() else FINISH_SECONDS
        try:
            process.communicate(timeout=seconds)
            if process.returncode:
                words = plain(log.read_text(errors="replace").strip().rpartition("\n")[2])
                warn(f"{tracker} does not have all of this run ({words}); its own files are complete, see {log}")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            warn(f"{tracker} took more than {seconds:.0f} s to end; the next start of the run goes on with it")
