"""Damage to the folder of an inactive run: some is repaired silently, some must raise an error."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from storm.run_state import last_step, saved_steps


@dataclass
class Damage:
    """A damage of a folder."""

    refused: bool = False  # whether the run must not resume
    steps: list[int] = field(default_factory=list)  # steps of checkpoints that are no longer complete
    foreign: list[Path] = field(default_factory=list)  # files that the damage added
    lost_rows: list[tuple[str, int, int]] = field(default_factory=list)  # file, step and seed, if it is known


def spoil_file(path: Path, dice: random.Random) -> None:
    """Flip a bit of a file, cut it, empty it or remove it."""
    if not path.is_file() or not path.stat().st_size:  # an earlier damage took it, so it is spoilt
        return
    content = bytearray(path.read_bytes())
    how = dice.choice(["flip", "cut", "empty", "remove"])
    if how == "remove":
        path.unlink()
        return
    if how == "flip":
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content if how == "flip" else content[: dice.randrange(len(content))] if how == "cut" else b"")


def spoil_checkpoint(folder: Path, step: int, dice: random.Random) -> None:
    spoil_file(folder / "checkpoints" / f"{step:09d}" / dice.choice(["arrays.safetensors", "manifest.json"]), dice)


def damage_newest(folder: Path, dice: random.Random) -> Damage:
    step = saved_steps(folder / "checkpoints")[-1]
    spoil_checkpoint(folder, step, dice)
    return Damage(steps=[step])


def remove_newest(folder: Path, dice: random.Random) -> Damage:
    step = saved_steps(folder / "checkpoints")[-1]
    shutil.rmtree(folder / "checkpoints" / f"{step:09d}")
    return Damage(steps=[step])


def add_foreign(folder: Path, dice: random.Random) -> Damage:
    """Put things among the checkpoints and policies that are none."""
    path = (
        folder
        / dice.choice(["checkpoints", "policies"])
        / dice.choice(["²", "77777", "000009999", "notes.txt", "lost"])
    )
    if path.name in ("²", "lost") and dice.random() < 0.5:
        path.mkdir()
    else:
        path.write_text("not a checkpoint\n")
    return Damage(foreign=[path])


def spoil_row(folder: Path, dice: random.Random) -> Damage:
    """Spoil a line of the metrics or the evaluations."""
    name = dice.choice(["metrics.jsonl", "evaluations.jsonl"])
    lines = (folder / name).read_bytes().split(b"\n")
    index = dice.randrange(len(lines) - 1)
    row = json.loads(lines[index])
    lines[index] = dice.choice(
        [lines[index][: len(lines[index]) // 2], b"{}", b"5", b"\x00" * 40, b"\xff\xfe", b"[" * 5000]
    )
    (folder / name).write_bytes(b"\n".join(lines))
    return Damage(lost_rows=[(name, row["step"], row["seed"])])


def spoil_all(folder: Path, dice: random.Random) -> Damage:
    steps = saved_steps(folder / "checkpoints")
    for step in steps:
        spoil_checkpoint(folder, step, dice)
    return Damage(refused=True)


def remove_checkpoints(folder: Path, dice: random.Random) -> Damage:
    shutil.rmtree(folder / "checkpoints")
    return Damage(refused=True)


def spoil_config(folder: Path, dice: random.Random) -> Damage:
    text = (folder / "config.json").read_text()
    bad = ["", "[]", "null", text[: len(text) // 2], "[" * 50_000, json.dumps(json.loads(text)["run"]), "\x00\x01"]
    (folder / "config.json").write_text(dice.choice(bad))
    return Damage(refused=True)


DAMAGES: dict[str, Callable[[Path, random.Random], Damage]] = {
    "newest checkpoint damaged": damage_newest,
    "newest checkpoint removed": remove_newest,
    "foreign names beside checkpoints": add_foreign,
    "a line of rows damaged": spoil_row,
    "all checkpoints damaged": spoil_all,
    "checkpoints removed": remove_checkpoints,
    "config.json damaged": spoil_config,
}


def is_possible(name: str, folder: Path, whole: list[int]) -> bool:
    """Return whether a folder has enough files for a damage, and enough left to resume.

    Args:
        name: The damage.
        folder: The run.
        whole: The steps of checkpoints that are whole.
    """
    if name.startswith("newest"):
        return len(whole) > 1 and saved_steps(folder / "checkpoints")[-1] == whole[-1]
    if name == "a line of rows damaged":
        files = [folder / "metrics.jsonl", folder / "evaluations.jsonl"]
        return all(each.is_file() and each.read_bytes().count(b"\n") > 2 and is_clean(each) for each in files)
    newest = max(last_step(folder / "metrics.jsonl"), *saved_steps(folder / "policies"), 0)
    if name == "checkpoints removed" and newest == 0:
        return False  # a restart would lose nothing, so it would not raise the expected error
    return bool(whole) and (folder / "config.json").is_file() and (folder / "policies").is_dir()


def is_clean(rows: Path) -> bool:
    """Return whether every line of a file of rows can be read."""
    try:
        return all(isinstance(json.loads(line), dict) for line in rows.read_bytes().split(b"\n")[:-1])
    except ValueError:
        return False
