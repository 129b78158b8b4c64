"""Mirror a run's rows in a tracker, from a separate process, so that no tracker can stop the run."""

import contextlib
import importlib.util
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator

from drol.errors import InputError, plain, unknown_name
from drol.runs.directory import RunDirectory

PACKAGES = {"wandb": "wandb", "tensorboard": "tensorboardX", "trackio": "trackio"}  # the package of each tracker
FINISH_SECONDS = 60.0  # time for the mirror to write the last rows
STOP_SECONDS = 5.0  # the same after a signal; missing rows are sent when the run resumes


logger = logging.getLogger(__name__)


def check_tracker(name: str) -> None:
    """Raise `InputError` for a tracker that is unknown or not installed.

    Args:
        name: "wandb", "tensorboard" or "trackio".
    """
    if name not in PACKAGES:
        raise unknown_name("tracker", name, PACKAGES)
    if importlib.util.find_spec(PACKAGES[name]) is None:
        raise InputError(f"the tracker {name} needs {PACKAGES[name]}; install it with: pip install 'drol[{name}]'")


@contextlib.contextmanager
def mirrored(directory: RunDirectory, tracker: str | None, hurried: Callable[[], bool]) -> Iterator[None]:
    """Mirror a run in a tracker inside this context; an error of the tracker only logs one warning.

    Args:
        directory: The run, which must exist.
        tracker: The tracker; none if None.
        hurried: Called at the end; True limits the wait for the last rows to `STOP_SECONDS`.
    """
    if tracker is None:
        yield
        return
    folder = directory.tracking / tracker
    log = folder / "log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:  # the mirror ends when its input closes, also if this process is killed
            command = [sys.executable, "-m", "drol.tracking.mirror", str(directory.path), tracker]
            streams = {"stdin": subprocess.PIPE, "stdout": output, "stderr": output}
            process = subprocess.Popen(command, start_new_session=True, **streams)
    except OSError as error:
        logger.warning(f"this run is not sent to {tracker} ({error}); the files of the run are complete")
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
                logger.warning(
                    f"{tracker} does not have all of this run ({words}); its own files are complete, see {log}"
                )
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            logger.warning(f"{tracker} took more than {seconds:.0f} s to end; the next start of the run resumes it")
