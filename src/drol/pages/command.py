"""The command that makes a run again."""

import dataclasses
import shlex
from pathlib import Path

from drol.algorithms import algorithm_name
from drol.errors import InputError
from drol.paper.planned import flag_of, value_of
from drol.paper.presets import LAPTOP, ONLINE, PRESETS, settings
from drol.paper.scales import SHRUNK
from drol.runs.config import RunConfig

OWN_WORDS = "# made by a script: `drol train` does not know its task or its algorithm"


def train_command(config: RunConfig, path: Path) -> str:
    """Return the command that makes a run with these settings: of all presets, from the one that is nearest.

    Args:
        config: The settings.
        path: The folder of the run.
    """
    name = algorithm_name(config.algorithm)
    found = []
    for preset in (*PRESETS, LAPTOP, *SHRUNK, ONLINE):
        try:
            start = settings(config.task, name, preset)
        except InputError:
            continue
        flags = different_flags(config, start)
        if flags is not None:
            found.append((sum(map(len, flags)), preset, flags))
    if not found:
        return OWN_WORDS
    _, preset, flags = min(found, key=lambda each: each[0])
    words = ["drol", "train", config.task, "--algorithm", name, "--preset", preset]
    words += [word for flag in flags for word in flag]
    return shlex.join([*words, "--seeds", *map(str, config.seeds), "--out", str(path)])


def different_flags(config: RunConfig, start: RunConfig) -> list[list[str]] | None:
    """Return the flags of the settings that differ from some others; None where a flag cannot undo one."""
    names = [field.name for field in (*dataclasses.fields(config), *dataclasses.fields(config.algorithm))]
    changed = [name for name in names if name not in ("algorithm", "task", "seeds")]
    changed = [name for name in changed if value_of(config, name) != value_of(start, name)]
    if any(value_of(config, name) is None for name in changed):
        return None
    return [flag_of(config, name) for name in changed]
