"""The `drol` commands that produce a run."""

import dataclasses
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drol.algorithms import algorithm_name
from drol.errors import InputError
from drol.presets.scales import SHRUNK
from drol.presets.settings import LAPTOP, ONLINE, PRESETS, settings
from drol.runs.config import RunConfig

OWN_WORDS = "# made by a script: `drol train` does not know its task or its algorithm"


def run_commands(config: RunConfig, path: Path, best_of: Iterable[int] = ()) -> list[str]:
    """Return the shell commands of a run and of further evaluations of its last policy.

    Args:
        config: The settings.
        path: The folder of the run.
        best_of: For each further evaluation, the number of actions from which the critic chooses.
    """
    evaluations = [shlex.join(["drol", "evaluate", str(path), "--best-of", str(count)]) for count in best_of]
    return [train_command(config, path), *evaluations]


def train_command(config: RunConfig, path: Path) -> str:
    """Return the shortest command for a run with these settings: a preset and a flag for each difference.

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
            found.append((len(flags), preset, flags))
    if not found:
        return OWN_WORDS
    _, preset, flags = min(found, key=lambda each: each[0])
    words = ["drol", "train", config.task, "--algorithm", name, "--preset", preset, *flags]
    return shlex.join([*words, "--seeds", *map(str, config.seeds), "--out", str(path)])


def different_flags(config: RunConfig, start: RunConfig) -> list[str] | None:
    """Return the flags for the settings that differ from `start`; None if no flag can set a value."""
    words: list[str] = []
    for own, other in ((config, start), (config.algorithm, start.algorithm)):
        for field in dataclasses.fields(own):
            value = getattr(own, field.name)
            if field.name in ("algorithm", "task", "seeds") or value == getattr(other, field.name):
                continue
            if value is None or value == ():
                return None
            words += flag_words(field, value)
    return words


def flag_words(field: dataclasses.Field, value: Any) -> list[str]:
    """Return the arguments of `drol train` that set a field."""
    flag = field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, tuple):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]
