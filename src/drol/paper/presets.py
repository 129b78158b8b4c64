"""Presets: the settings of the DROL paper's tables, task by task, and small networks for a laptop.

`settings` makes the settings of a run from one of them. An unknown value of the paper stays out, so that the
algorithm's default holds, and a note says so; docs/algorithms.md lists what is unknown.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.errors import InputError, unknown_name
from drol.paper.fql_commands import ONLINE_RUN, VISUAL_RUN, online_notes, online_values, visual_notes, visual_values
from drol.paper.hyperparameters import (
    D4RL,
    D4RL_COLUMNS,
    DOUBTFUL,
    DROL,
    DROL_DIFFERENCES,
    OGBENCH,
    OGBENCH_COLUMNS,
    REMARKS,
    SOURCES,
    WHY_UNKNOWN,
)
from drol.paper.scales import SHRUNK, like_task, shrunk_hyperparameters, shrunk_run
from drol.runs.config import RunConfig
from drol.tasks import DEFAULT_TASK, find_source
from drol.tasks.base import Task

# As printed with K = 16 and with K*, and as in the official commands (commit 7e669b0) for the same two columns.
PRESETS = ("paper", "paper-tuned", "released", "released-tuned")
ONLINE = "online"  # the official commands of FQL that train offline and then online
LAPTOP = "laptop"  # ours, for quick runs; an algorithm's `presets` say what it changes of its hyperparameters
LAPTOP_RUN = {
    "steps": 10_000,
    "log_interval": 1_000,
    "evaluation_interval": 5_000,
    "checkpoint_interval": 5_000,
    "standardise_observations": True,
    "observation_scale": 4.0,
}
METHODS = ("drol", "bc", "iql", "rebrac", "fawac", "fbrac", "ifql", "deflow", "sorl", "fql")
FROM_CORL = ("bc", "iql", "rebrac")  # whose D4RL columns are copied from the CORL benchmark


def tasks_of(group: str) -> tuple[str, ...]:
    """Return the tasks that share a row: the five of an OGBench dataset, or one of D4RL."""
    if group in D4RL:
        return (f"{group}-{'v2' if group.startswith('antmaze') else 'v1'}",)
    return tuple(f"{group}-{OGBENCH[group][0]}-singletask-task{number}-v0" for number in range(1, 6))


TASKS = tuple(task for group in (*OGBENCH, *D4RL) for task in tasks_of(group))  # all 68, in the order of the tables
GROUP_OF_TASK = {task: group for group in (*OGBENCH, *D4RL) for task in tasks_of(group)}
GROUP_OF_TASK |= {f"{group}-{row[0]}-singletask-v0": group for group, row in OGBENCH.items()}  # the default tasks


@dataclass(frozen=True)
class Settings:
    """What is known of one algorithm on one task; what is unknown is absent, and notes say so."""

    hyperparameters: dict[str, Any]
    run: dict[str, Any]
    notes: tuple[str, ...]  # one line each
    source: str
    unknown: tuple[str, ...] = ()  # hyperparameters that were tuned to a value nobody can read
    doubtful: tuple[str, ...] = ()  # hyperparameters whose value may have been misread


@dataclass(frozen=True)
class FamilyRow:
    """One row of the settings for display: an OGBench family or a D4RL task, under every preset."""

    benchmark: str
    family: str
    tasks: tuple[str, ...]
    settings: dict[str, Settings]  # by preset


def settings(
    task: str | Task = DEFAULT_TASK,
    algorithm: str | type[Algorithm] = "drol",
    preset: str = "paper",
    **changes: Any,
) -> RunConfig:
    """Return the settings of a run: the defaults, then those of a preset, then the changes that are given.

    Args:
        task: The name of a task of `drol data list --all`, or a task.
        algorithm: The name of an algorithm of `drol algorithms`, or the class of one.
        preset: "paper" or "paper-tuned" (the task's row of the paper's tables, with K = 16 or the tuned K),
            "released" or "released-tuned" (the official commands), "online" (those of FQL that go on online), "small"
            (the paper's with small networks and few updates, for two cores) or "laptop" (smaller still, for the demo).
        changes: Settings of a run (`seeds`, `steps`, ...) and hyperparameters of the algorithm (`bc_weight`, ...); the
            flags of `drol train` as keywords.

    Returns:
        The settings, for `drol.train`.

    Example:
        >>> import drol
        >>> config = drol.settings("cube-single-play-singletask-task2-v0", "drol", preset="paper", seeds=(0, 1, 2))
        >>> config.algorithm.bc_weight, config.steps
        (10.0, 1000000)
    """
    if isinstance(task, str):
        find_source(task)  # refuses an unknown name before anything else
    name = task if isinstance(task, str) else task.name
    kind = find_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    start = preset_settings(name, kind, preset)
    run_names = [field.name for field in dataclasses.fields(RunConfig) if field.name not in ("algorithm", "task")]
    own_names = [field.name for field in dataclasses.fields(kind)]
    for each in changes:
        if each not in (*run_names, *own_names):
            raise unknown_name("setting", each, (*run_names, *own_names))
    hyperparameters = start.hyperparameters | {each: changes[each] for each in own_names if each in changes}
    run = start.run | {each: changes[each] for each in run_names if each in changes}
    return RunConfig(kind(**hyperparameters), name, **run)


def preset_settings(task: str, kind: type[Algorithm], preset: str) -> "Settings":
    """Return what a preset gives an algorithm on a task, before anything is changed."""
    if preset == LAPTOP:
        return Settings({**kind.presets.get(LAPTOP, {})}, LAPTOP_RUN, notes=(), source="drol")
    if preset in SHRUNK:
        start = task_settings(like_task(task), algorithm_name(kind))
        return dataclasses.replace(
            start,
            hyperparameters=start.hyperparameters | shrunk_hyperparameters(task, kind, preset),
            run=start.run | shrunk_run(task, preset),
        )
    if preset == ONLINE:
        return online_settings(task, algorithm_name(kind))
    return task_settings(task, algorithm_name(kind), preset)


def task_settings(task: str, algorithm: str, preset: str = "paper") -> Settings:
    """Return the paper's settings of an algorithm on a task; none, with a note, where the paper has none."""
    if preset not in PRESETS:
        others = ", ".join((ONLINE, *SHRUNK, LAPTOP))
        raise InputError(f"preset is {preset!r}; it must be one of {', '.join(PRESETS)}, or {others} for `settings`")
    visual = visual_values(task, algorithm)
    if visual is not None:
        return Settings(visual, VISUAL_RUN, visual_notes(task, algorithm), SOURCES["fql"])
    for known, name, what in ((METHODS, algorithm, "method"), (GROUP_OF_TASK, task, "task")):
        if name not in known:
            return Settings({}, {}, (f"{name} is not a {what} of the paper; the defaults of {algorithm} hold",), "none")
    kind = find_algorithm(algorithm)
    group = GROUP_OF_TASK[task]
    values = drol_values(group, preset) if algorithm == "drol" else baseline_values(group, algorithm)
    unknown = tuple(name for name, value in values.items() if value is None)
    notes = []
    if unknown:
        defaults = ", ".join(f"{name} {getattr(kind, name)}" for name in unknown)
        notes.append(f"{algorithm}: unknown, so at its default unless given: {defaults}; {WHY_UNKNOWN[algorithm]}")
    doubtful = ("alpha",) if (algorithm, group) in DOUBTFUL else ()
    notes += [f"{algorithm}: {name} {values[name]:g} is doubtful, {DOUBTFUL[algorithm, group]}" for name in doubtful]
    notes += remarks(group, algorithm, preset)
    return Settings(
        hyperparameters={name: value for name, value in values.items() if value is not None},
        run={"steps": 500_000} if group in D4RL else {"steps": 1_000_000, "success_timing": "after"},
        notes=tuple(notes),
        source=source(group, algorithm, preset),
        unknown=unknown,
        doubtful=doubtful,
    )


def online_settings(task: str, algorithm: str) -> Settings:
    """Return the settings of FQL's official command that trains an algorithm offline and then online on a task."""
    group = GROUP_OF_TASK.get(task)
    values = online_values(group, algorithm)
    if group is None or values is None:
        raise InputError(
            f"no official command trains {algorithm} online on {task}; choose another preset and give --online-steps"
        )
    start = task_settings(task, algorithm)
    return dataclasses.replace(
        start,
        hyperparameters=start.hyperparameters | values,
        run=start.run | ONLINE_RUN,
        notes=(*start.notes, *online_notes(group, task, algorithm)),
        source=SOURCES["fql"],
    )


def notes_on(config: RunConfig, preset: str) -> tuple[str, ...]:
    """Return what a person should know of settings that were made from a preset."""
    name = algorithm_name(config.algorithm)
    notes = preset_settings(config.task, type(config.algorithm), preset).notes
    if config.online_steps and preset in PRESETS and online_values(GROUP_OF_TASK.get(config.task), name) is not None:
        notes += (f"{name}: with online steps this task has settings of its own, in the preset {ONLINE}",)
    return notes


def family_rows(algorithm: str) -> list[FamilyRow]:
    """Return every row of an algorithm's settings, in the order of the tables; none if the paper does not have it."""
    find_algorithm(algorithm)
    return [
        FamilyRow(
            benchmark="D4RL" if group in D4RL else "OGBench",
            family=group,
            tasks=tasks_of(group),
            settings={preset: task_settings(tasks_of(group)[0], algorithm, preset) for preset in PRESETS},
        )
        for group in (*OGBENCH, *D4RL)
        if algorithm in METHODS
    ]


def drol_row(group: str) -> str:
    """Return the row of DROL's table; door, hammer and relocate have one for their three datasets."""
    return group if group in DROL else group.split("-")[0]


def drol_values(group: str, preset: str) -> dict[str, Any]:
    row = drol_row(group)
    bc_weight, tuned, discount, q_aggregation = DROL[row]
    values = {
        "bc_weight": bc_weight,
        "num_candidates": tuned if preset.endswith("-tuned") else 16,
        "discount": discount,
        "q_aggregation": q_aggregation,
    }
    if (preset, row) in DROL_DIFFERENCES:
        name, value = DROL_DIFFERENCES[preset, row]
        values[name] = value
    return values


def baseline_values(group: str, algorithm: str) -> dict[str, Any]:
    """Return the hyperparameters of a baseline by our names; None: unknown."""
    if algorithm == "sorl" and group in D4RL:
        return {"q_weight": None, "discount": None, "q_aggregation": None, "act_steps": 8}
    if group in OGBENCH:
        data, discount, q_aggregation, row = OGBENCH[group]
        tuned = pick(OGBENCH_COLUMNS, row, algorithm)
    else:
        data = "antmaze" if group.startswith("antmaze") else "adroit"
        discount = 0.999 if algorithm == "rebrac" and data == "antmaze" else 0.99  # 0.999: CORL
        q_aggregation = "mean" if data == "antmaze" else "min"
        tuned = pick(D4RL_COLUMNS, D4RL[group], algorithm)
    shared = {"discount": discount, "q_aggregation": q_aggregation, "expectile": 0.9, "act_steps": 8}
    fields = [field.name for field in dataclasses.fields(find_algorithm(algorithm))]
    values = tuned | {name: value for name, value in shared.items() if name in fields and name not in tuned}
    if group in OGBENCH and algorithm in ("bc", "iql", "ifql"):  # the sources say nothing more about widths
        values["hidden_sizes"] = (256 if algorithm == "iql" and data == "play" else 512,) * 4
    if group in OGBENCH and algorithm == "rebrac":
        values["mask_next_action"] = False  # as the code that made the published numbers
    return values


def pick(columns: Sequence[tuple[str, str]], row: Sequence[Any], algorithm: str) -> dict[str, Any]:
    return {name: cell for (method, name), cell in zip(columns, row, strict=True) if method == algorithm}


def remarks(group: str, algorithm: str, preset: str) -> list[str]:
    """Return notes on what the references leave open or contradict here."""
    here = {"all", group, "d4rl" if group in D4RL else OGBENCH[group][0]}
    notes = [f"{algorithm}: {words}" for names, where, words in REMARKS if algorithm in names and here & {*where}]
    printed, released = preset.replace("released", "paper"), preset.replace("paper", "released")
    if algorithm == "drol" and (released, drol_row(group)) in DROL_DIFFERENCES:
        name, official = DROL_DIFFERENCES[released, drol_row(group)]
        notes.append(
            f"drol: {name} is {drol_values(group, printed)[name]} as printed (preset {printed}) "
            f"and {official} in the official commands (preset {released})"
        )
    return notes


def source(group: str, algorithm: str, preset: str) -> str:
    if algorithm == "drol":
        return SOURCES[preset.removesuffix("-tuned")]
    if group in D4RL and algorithm in FROM_CORL:
        return SOURCES["corl"]
    if algorithm == "sorl" and baseline_values(group, algorithm)["q_weight"] is None:
        return SOURCES["not run"]
    if algorithm in SOURCES:
        return SOURCES[algorithm]
    online = group == "antsoccer-arena" and algorithm in ("iql", "rebrac", "ifql")  # also in the table of online tuning
    return SOURCES["antsoccer-arena" if online else "scan"]
