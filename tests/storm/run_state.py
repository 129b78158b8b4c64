"""Read the state of a run folder: its progress, and the files that differ from another run's."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from run_folders import comparable

ROWS = ("metrics.jsonl", "evaluations.jsonl", "online_episodes.jsonl")
FOLDERS = ("checkpoints/", "policies/", "trajectories/")


def saved_steps(folder: Path) -> list[int]:
    """Return the steps of checkpoints or policies; ignore other names."""
    names = [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def last_step(rows: Path) -> int:
    """Return the step of the last whole row of a file."""
    for line in reversed(rows.read_bytes().split(b"\n")[:-1] if rows.is_file() else []):
        try:
            return json.loads(line)["step"]
        except (ValueError, TypeError, KeyError):
            continue
    return 0


def progress(folder: Path) -> int:
    """Return the last update that is known to have been done."""
    return max(last_step(folder / "metrics.jsonl"), *saved_steps(folder / "checkpoints"), 0)


def differences(
    folder: Path, expected: Path, failed_episodes: int, lost_rows: Iterable[tuple[str, int, int]]
) -> list[str]:
    """Return what is not as in an undisturbed run, a line for each file.

    Args:
        folder: The run.
        expected: The undisturbed run.
        failed_episodes: The most episodes that may have failed, because their environments were broken on purpose.
        lost_rows: File, step and seed of rows that were damaged when nothing could make them again.
    """
    found, wanted = comparable(folder), comparable(expected)
    problems = [f"{name} is left over" for name in found if ".partial" in name or ".old" in name]
    common = set(saved_steps(folder / "checkpoints")) & set(saved_steps(expected / "checkpoints"))
    if saved_steps(folder / "checkpoints")[-1:] != saved_steps(expected / "checkpoints")[-1:]:
        problems.append("the last checkpoint is not that of the last step")
    failures, failed_files = compare_evaluations(found, wanted, problems)
    orders = [[(row["step"], row["seed"]) for row in each.get("evaluations.jsonl", ())] for each in (found, wanted)]
    if orders[0] != orders[1] and not any(row[0] == "evaluations.jsonl" for row in lost_rows):
        problems.append("the rows of evaluations.jsonl are in another order")
    if failures > failed_episodes:
        problems.append(f"{failures} episodes failed where {failed_episodes} environments were broken")
    for name in sorted({name for name in found.keys() | wanted.keys() if name in ROWS or name.startswith(FOLDERS)}):
        if name == "evaluations.jsonl" or name in failed_files or ".partial" in name:
            continue
        if name.startswith("checkpoints/") and int(name.split("/")[1]) not in common:
            continue  # a signal saves at another step, and only two checkpoints are kept
        if name == "metrics.jsonl":
            wanted[name] = without_rows(wanted[name], {row[1:] for row in lost_rows if row[0] == name})
        if found.get(name) != wanted.get(name):
            where = "is missing" if name not in found else "is new" if name not in wanted else "differs"
            problems.append(f"{name} {where}")
    return problems


def without_rows(content: Any, lost: set[tuple[int, int]]) -> bytes:
    """Return rows without those of some steps and seeds."""
    lines = content.splitlines(keepends=True)
    kept = [line for line in lines if (lambda row: (row["step"], row["seed"]) not in lost)(json.loads(line))]
    return b"".join(kept)


def compare_evaluations(found: dict, wanted: dict, problems: list[str]) -> tuple[int, set[str]]:
    """Compare the rows of evaluations but for episodes that failed; return how many did, and their trajectories."""
    ours, theirs = (
        {(row["step"], row["seed"]): row for row in each.get("evaluations.jsonl", ())} for each in (found, wanted)
    )
    failures, files = 0, set()
    if len(ours) != len(found.get("evaluations.jsonl", ())) or ours.keys() != theirs.keys():
        problems.append(
            f"evaluations.jsonl has {len(found.get('evaluations.jsonl', ()))} rows where {len(theirs)} are right"
        )
        return 0, files
    for identity, row in ours.items():
        right = theirs[identity]
        failed = {index for index, episode in enumerate(row.get("episodes", ())) if "failure" in episode}
        if not failed:
            if row != right:
                problems.append(f"evaluations.jsonl differs at step {identity[0]}, seed {identity[1]}")
            continue
        failures += len(failed)
        files.add(name := f"trajectories/{identity[0]:09d}-seed{identity[1]}.npz")
        pairs = list(zip(row["episodes"], right["episodes"], strict=True))
        rest = {key for key in right if key not in ("episodes", "score")}
        same = all(index in failed or one == other for index, (one, other) in enumerate(pairs))
        if not same or any(row[key] != right[key] for key in rest):
            problems.append(f"evaluations.jsonl differs beside failed episodes at step {identity[0]}")
        if name in found and not same_positions(found[name], wanted[name], failed):
            problems.append(f"{name} differs beside failed episodes")
    return failures, files


def same_positions(found: dict, wanted: dict, failed: set[int]) -> bool:
    """Return whether the trajectories of all successful episodes are equal."""
    ours, theirs = (split_positions(each) for each in (found, wanted))
    return len(ours) == len(theirs) and all(
        index in failed or np.array_equal(one, other)
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True))
    )


def split_positions(arrays: dict) -> list[np.ndarray]:
    lengths = np.frombuffer(arrays["lengths"], np.int64)
    return np.split(np.frombuffer(arrays["positions"], np.float32).reshape(-1, 2), np.cumsum(lengths)[:-1])
