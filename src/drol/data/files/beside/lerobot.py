"""LeRobot's meta folder: the names of numbers, videos that lie in other files, the texts of tasks (v2.1 and v3.0)."""

import json
from pathlib import Path
from typing import Any

from drol.data.files.beside.description import MOST_LINES, Description, find_above, read_json, read_limited
from drol.data.files.columns import VIDEO, Column
from drol.errors import InputError

FILE = "meta/info.json"
SHOWN_TASKS = 6
OWN = {
    "index": "LeRobot's count of all steps",
    "frame_index": "LeRobot's count of steps in an episode; the timestamp is the time",
}


def describe_lerobot(path: Path) -> Description | None:
    """Return what LeRobot says of a file of its steps; None if LeRobot did not write it."""
    beside = find_above(path, FILE, 5)
    if beside is None:
        return None
    found = read_json(beside)
    features = found.get("features") if isinstance(found, dict) else None
    if not isinstance(features, dict) or not all(isinstance(each, dict) for each in features.values()):
        raise InputError(f"{beside} has no features; it must be what LeRobot writes, or name the files alone")
    videos = [name for name, feature in features.items() if feature.get("dtype") == "video"]
    others = [Column(str(name), VIDEO, words="a video", why="videos are not read") for name in videos]
    names = {str(name): names_of(feature.get("names")) for name, feature in features.items()}
    tasks = read_tasks(beside.parent)
    shown = ", ".join(f"{number} = {text}" for number, text in list(tasks.items())[:SHOWN_TASKS])
    more = f" and {len(tasks) - SHOWN_TASKS} more" if len(tasks) > SHOWN_TASKS else ""
    reasons = OWN | {"task_index": f"the number of the task ({shown}{more}); name it with --observation to use it"}
    return Description(beside, {name: each for name, each in names.items() if each}, others, reasons)


def names_of(found: Any) -> tuple[str, ...]:
    """Return the names of a feature's numbers: a list, or lists by group; () if there are none."""
    if isinstance(found, dict):
        found = [name for names in found.values() for name in (names if isinstance(names, list) else [names])]
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return ()
    return tuple(found)


def read_tasks(folder: Path) -> dict[int, str]:
    """Return the texts of tasks by their numbers: tasks.jsonl (v2.1) or tasks.parquet (v3.0)."""
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
        from drol.data.files.parquet import OpenParquet

        read_limited(table)
        with OpenParquet(table) as file:
            for batch in file.iter_batches(1024, use_threads=False):
                columns = batch.to_pydict()
                texts = columns.get("task") or columns.get("__index_level_0__") or []
                tasks |= {int(number): str(text) for number, text in zip(columns.get("task_index", []), texts)}  # noqa: B905
    return tasks
