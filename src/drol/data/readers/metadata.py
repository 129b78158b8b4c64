"""Read the metadata that LeRobot and Minari write beside their steps: names, bounds, tasks, videos."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drol.data.actions import ActionBox
from drol.data.readers.columns import VIDEO, Column
from drol.errors import InputError

LARGEST = 1 << 24  # bytes of a metadata file
MOST_LINES = 100_000
LEROBOT_FILE = "meta/info.json"
SHOWN_TASKS = 6
LEROBOT_COLUMNS = {
    "index": "LeRobot's count of all steps",
    "frame_index": "LeRobot's count of steps in an episode; the timestamp is the time",
}
MINARI_FILE = "metadata.json"
PADDED_FORMATS = ("arrow", "parquet")  # their columns are all as long as the observations


@dataclass(frozen=True)
class Description:
    """The metadata of the steps in a folder.

    Attributes:
        path: The metadata file.
        names: The names of the numbers of some columns.
        others: Columns in other files, which are not read.
        reasons: Why some columns are not used, by name.
        box: The action bounds.
        has_final: Whether each file is an episode whose last row only holds the final observation.
        notes: Notes for the user.
    """

    path: Path
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: Sequence[Column] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    box: ActionBox | None = None
    has_final: bool = False
    notes: tuple[str, ...] = ()


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; raise `InputError` if it is invalid or larger than `LARGEST`."""
    try:
        return json.loads(read_limited(path))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({str(error)[:100]}); write it again, or name the files alone"
        ) from error


def read_limited(path: Path) -> bytes:
    """Return the bytes of a regular file; raise `InputError` if it is larger than `LARGEST`."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise InputError(f"{path} is no plain file of at most {LARGEST:,} bytes; write it again")
    return path.read_bytes()


def find_above(path: Path, name: str, levels: int) -> Path | None:
    """Return the nearest file of this name in the `levels` folders above a file; None if there is none."""
    return next((folder / name for folder in list(path.parents)[:levels] if (folder / name).is_file()), None)


def describe_lerobot(path: Path) -> Description | None:
    """Return LeRobot's metadata of a file of steps; None if LeRobot did not write the file."""
    beside = find_above(path, LEROBOT_FILE, 5)
    if beside is None:
        return None
    found = read_json(beside)
    features = found.get("features") if isinstance(found, dict) else None
    if not isinstance(features, dict) or not all(isinstance(each, dict) for each in features.values()):
        raise InputError(f"{beside} has no features; it must be what LeRobot writes, or name the files alone")
    rate = found.get("fps", 1)
    if type(rate) not in (int, float) or not 0 < rate < math.inf:
        raise InputError(f"{beside}: fps is {str(rate)[:40]!r}; it must be a positive number, so correct it")
    videos = [name for name, feature in features.items() if feature.get("dtype") == "video"]
    others = [Column(str(name), VIDEO, words="a video", why="videos are not read") for name in videos]
    names = {str(name): names_of(feature.get("names")) for name, feature in features.items()}
    tasks = read_tasks(beside.parent)
    shown = ", ".join(f"{number} = {text}" for number, text in list(tasks.items())[:SHOWN_TASKS])
    more = f" and {len(tasks) - SHOWN_TASKS} more" if len(tasks) > SHOWN_TASKS else ""
    reasons = LEROBOT_COLUMNS | {
        "task_index": f"the number of the task ({shown}{more}); name it with --observation to use it"
    }
    return Description(beside, {name: each for name, each in names.items() if each}, others, reasons)


def names_of(found: Any) -> tuple[str, ...]:
    """Return the names of a feature's numbers from a list, or from lists by group; () if there are none."""
    if isinstance(found, dict):
        found = [name for names in found.values() for name in (names if isinstance(names, list) else [names])]
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return ()
    return tuple(found)


def read_tasks(folder: Path) -> dict[int, str]:
    """Return the texts of tasks by number, from tasks.jsonl (v2.1) or tasks.parquet (v3.0)."""
    lines, table = folder / "tasks.jsonl", folder / "tasks.parquet"
    tasks: dict[int, str] = {}
    if lines.is_file():
        for number, line in enumerate(read_limited(lines).splitlines()[:MOST_LINES], 1):
            try:
                row = json.loads(line)
                tasks[int(row["task_index"])] = str(row["task"])
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(
                    f"{lines}, line {number}, is no task of LeRobot ({error!r}); write it again"
                ) from error
    elif table.is_file():
        from drol.data.readers.arrow_tables import OpenParquet

        read_limited(table)
        with OpenParquet(table) as file:
            for batch in file.iter_batches(1024, use_threads=False):
                columns = batch.to_pydict()
                texts = columns.get("task") or columns.get("__index_level_0__") or []
                tasks |= {int(number): str(text) for number, text in zip(columns.get("task_index", []), texts)}  # noqa: B905
    return tasks


def describe_minari(path: Path) -> Description | None:
    """Return Minari's metadata of a file of steps; None if Minari did not write the file."""
    beside = find_above(path, MINARI_FILE, 1) if path.suffix == ".hdf5" else find_above(path.parent, MINARI_FILE, 1)
    if beside is None:
        return None
    found = read_json(beside)
    if not isinstance(found, dict) or "action_space" not in found:
        return None
    try:
        space = found["action_space"]
        space = json.loads(space) if isinstance(space, str) else space
        box = box_of(space)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError) as error:
        raise InputError(f"{beside} has an action space that cannot be read ({error}); write it again") from error
    notes = ()
    if box is None and isinstance(space, dict):
        notes = (f"the action space of {MINARI_FILE} is {str(space.get('type'))[:40]}, not a finite box",)
    return Description(beside, box=box, has_final=found.get("data_format") in PADDED_FORMATS, notes=notes)


def box_of(space: Any) -> ActionBox | None:
    """Return the bounds of an action space; None if it is not a finite Box."""
    if space["type"] != "Box":
        return None
    low, high = (list(map(float, flat(space[side]))) for side in ("low", "high"))
    if not low or not all(map(math.isfinite, [*low, *high])):
        return None
    return ActionBox(tuple(low), tuple(high))


def flat(values: Any) -> list[Any]:
    """Return the numbers in nested lists."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]
