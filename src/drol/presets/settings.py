"""Make the settings of a run from a preset: the DROL paper's tables, released commands, or smaller scales.

A value that the paper does not give is omitted, so that the algorithm's default applies, and a note reports it.
docs/algorithms.md lists the unknown values.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drol.algorithms import Algorithm, algorithm_name, find_algorithm
from drol.algorithms.base import SMALL
from drol.errors import InputError, unknown_name
from drol.presets.fql_commands import ONLINE_RUN, VISUAL_RUN, online_notes, online_values, visual_notes, visual_values
from drol.presets.paper_hyperparameters import (
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
from drol.presets.scales import SHRUNK, like_task, shrunk_hyperparameters, shrunk_run
from drol.runs.config import RunConfig
from drol.tasks import DEFAULT_TASK, find_source
from drol.tasks.base import Task
from drol.tasks.own_data import PREFIX
from drol.training import own_data

# The printed tables with K = 16 and with the tuned K, and the official commands (commit 7e669b0) for both.
PRESETS = ("paper", "paper-tuned", "released", "released-tuned")
ONLINE = "online"  # the official commands of FQL that train offline and then online
LAPTOP = "laptop"  # for quick runs, not from the paper; the `presets` of an algorithm have its hyperparameters
LAPTOP_RUN = {
    "steps": 10_000,
    "log_interval": 1_000,
    "evaluation_interval": 5_000,
    "checkpoint_interval": 5_000,
    "standardise_observations": True,
    "observation_scale": 4.0,
}
OWN = "own"  # for data without a simulator: networks and updates depend on the size of the data and the machine's speed
ONE_SETTING = ("drol-choice", "bfn")  # not in the paper; of its settings they use only the discount of each task
METHODS = ("drol", "bc", "iql", "rebrac", "fawac", "fbrac", "ifql", "deflow", "sorl", "fql")
EQUATION = "drol-equation"  # the printed loss with the printed alpha, which multiplies Q
CONTROL = "drol-control"  # DROL with another rule to choose the winner, and DROL's settings
WITH_SETTINGS = (*METHODS, EQUATION, CONTROL)  # algorithms with settings for every task of the paper
FROM_CORL = ("bc", "iql", "rebrac")  # algorithms whose D4RL columns are copied from the CORL benchmark


def tasks_of(group: str) -> tuple[str, ...]:
    """Return the tasks of a row: the five tasks of an OGBench dataset, or one D4RL task."""
    if group in D4RL:
        return (f"{group}-{'v2' if group.startswith('antmaze') else 'v1'}",)
    return tuple(f"{group}-{OGBENCH[group][0]}-singletask-task{number}-v0" for number in range(1, 6))


TASKS = tuple(task for group in (*OGBENCH, *D4RL) for task in tasks_of(group))  # all 68, in the order of the tables
GROUP_OF_TASK = {task: group for group in (*OGBENCH, *D4RL) for task in tasks_of(group)}
GROUP_OF_TASK |= {f"{group}-{row[0]}-singletask-v0": group for group, row in OGBENCH.items()}  # the default tasks


@dataclass(frozen=True)
class Settings:
    """The known settings of one algorithm on one task; unknown values are omitted and reported in `notes`."""

    hyperparameters: dict[str, Any]
    run: dict[str, Any]
    notes: tuple[str, ...]  # one line each
    source: str
    unknown: tuple[str, ...] = ()  # tuned hyperparameters whose values are not available
    doubtful: tuple[str, ...] = ()  # hyperparameters whose value may have been misread


@dataclass(frozen=True)
class FamilyRow:
    """One row of the settings for display: an OGBench family or a D4RL task, with every preset."""

    benchmark: str
    family: str
    tasks: tuple[str, ...]
    settings: dict[str, Settings]  # by preset


def settings(
    task: str | Task = DEFAULT_TASK,
    algorithm: str | type[Algorithm] | None = None,
    preset: str | None = None,
    resume: Path | str | None = None,
    **changes: Any,
) -> RunConfig:
    """Return the settings of a run: the defaults, overridden by a preset, overridden by `changes`.

    Args:
        task: A task name from `drol data list --all`, or a task.
        algorithm: The name of an algorithm from `drol algorithms`, or an algorithm class. If None, "drol-choice" for
            data without a simulator and "drol" elsewhere.
        preset: "paper" or "paper-tuned" (the task's row of the paper's tables, with K = 16 or the tuned K),
            "released" or "released-tuned" (the official commands), "online" (FQL's commands that continue online),
            "short" (the paper's settings with fewer updates), "medium" (also with 3x256 networks), "small" (for the
            point mazes), "smoke" (a minute, to test), "laptop" (for the demo) or "own" (networks and updates chosen
            from the size of the data and the measured speed of this machine). If None, "own" for data without a
            simulator and "paper" elsewhere.
        resume: The folder of a run. If the preset is "own" and the folder has a run, its networks and its number of
            updates are reused instead of chosen again.
        changes: Settings of a run (`seeds`, `steps`, ...) and hyperparameters of the algorithm (`bc_weight`, ...). They
            are the flags of `drol train` as keywords.

    Returns:
        The settings, for `drol.train`. docs/algorithms.md lists the values of the presets.

    Example:
        >>> import drol
        >>> config = drol.settings("cube-single-play-singletask-task2-v0", "drol", preset="paper", seeds=(0, 1, 2))
        >>> config.algorithm.bc_weight, config.steps
        (10.0, 1000000)
    """
    preset = preset or default_preset(task)
    config = starting_settings(task, algorithm, preset, **changes)
    if preset != OWN:
        return config
    loaded = config.load_task() if isinstance(task, str) else config.prepare(task)
    return own_data.choose_settings(config, changes, loaded, resume).config


def starting_settings(
    task: str | Task, algorithm: str | type[Algorithm] | None, preset: str, **changes: Any
) -> RunConfig:
    """Return the settings that do not depend on the machine; except for "own", these are all settings."""
    if isinstance(task, str):
        find_source(task)  # raises an error for an unknown name
    name = task if isinstance(task, str) else task.name
    algorithm = algorithm or default_algorithm(task)
    kind = find_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    start = preset_settings(task, kind, preset)
    run_names = [field.name for field in dataclasses.fields(RunConfig) if field.name not in ("algorithm", "task")]
    own_names = [field.name for field in dataclasses.fields(kind)]
    for each in changes:
        if each not in (*run_names, *own_names):
            raise unknown_name("setting", each, (*run_names, *own_names))
    hyperparameters = start.hyperparameters | {each: changes[each] for each in own_names if each in changes}
    run = start.run | {each: changes[each] for each in run_names if each in changes}
    return RunConfig(kind(**hyperparameters), name, **run)


def is_own_data(task: str | Task) -> bool:
    """Return whether a task is imported data, or a task in memory without a simulator."""
    return task.startswith(PREFIX) if isinstance(task, str) else task.make_environment is None


def default_algorithm(task: str | Task) -> str:
    return own_data.METHOD if is_own_data(task) else "drol"


def default_preset(task: str | Task) -> str:
    return OWN if is_own_data(task) else "paper"


def preset_settings(task: str | Task, kind: type[Algorithm], preset: str) -> "Settings":
    """Return the settings of a preset for an algorithm on a task, before any changes."""
    name = task if isinstance(task, str) else task.name
    if preset == OWN:
        fields = {field.name for field in dataclasses.fields(kind)}
        rates = {each: value for each, value in own_data.RATES.items() if each in fields}
        return Settings(rates, {**own_data.RUN}, notes=(), source="drol")
    if preset == LAPTOP:
        return laptop_settings(kind, is_own_data(task))
    if preset in SHRUNK:
        start = task_settings(like_task(name), algorithm_name(kind))
        changes = shrunk_hyperparameters(name, kind, preset)
        if preset == "medium" and "discount" in start.hyperparameters:
            changes["discount"] = common_discount(like_task(name))
        return dataclasses.replace(
            start, hyperparameters=start.hyperparameters | changes, run=start.run | shrunk_run(name, preset)
        )
    if preset == ONLINE:
        return online_settings(name, algorithm_name(kind))
    return task_settings(name, algorithm_name(kind), preset)


def laptop_settings(kind: type[Algorithm], own: bool) -> "Settings":
    """Return the settings of the laptop preset; own data only get the small networks and their learning rates.

    The other values are specific to the maze of the demo.
    """
    values = kind.presets.get(LAPTOP, {})
    if not own:
        return Settings({**values}, LAPTOP_RUN, notes=(), source="drol")
    kept = {name: value for name, value in values.items() if name in SMALL}
    return Settings(kept, LAPTOP_RUN | {"observation_scale": 1.0}, notes=(), source="drol")


def common_discount(task: str) -> float:
    """Return FQL's discount on a task in the paper; on some tasks DROL's discount is larger."""
    return baseline_values(GROUP_OF_TASK[task], "fql")["discount"]


def task_settings(task: str, algorithm: str, preset: str = "paper") -> Settings:
    """Return the paper's settings of an algorithm on a task; empty settings with a note if the paper has none."""
    if preset not in PRESETS:
        others = ", ".join((ONLINE, *SHRUNK, LAPTOP, OWN))
        raise InputError(f"preset is {preset!r}; it must be one of {', '.join(PRESETS)}, or {others} for `settings`")
    visual = visual_values(task, algorithm)
    if visual is not None:
        return Settings(visual, VISUAL_RUN, visual_notes(task, algorithm), SOURCES["fql"])
    if algorithm in ONE_SETTING and task in GROUP_OF_TASK:
        notes = (f"{algorithm} is not a method of the paper; it has one setting, and the discount of FQL on the task",)
        return Settings({"discount": common_discount(task)}, paper_run(GROUP_OF_TASK[task]), notes, "drol")
    for known, name, what in ((WITH_SETTINGS, algorithm, "method"), (GROUP_OF_TASK, task, "task")):
        if name not in known:
            return Settings({}, {}, (f"{name} is not a {what} of the paper; the defaults of {algorithm} hold",), "none")
    preset = preset.replace("released", "paper") if algorithm == EQUATION else preset  # no official command runs it
    kind = find_algorithm(algorithm)
    group = GROUP_OF_TASK[task]
    values = table_values(group, algorithm, preset)
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
        run=paper_run(group),
        notes=tuple(notes),
        source=source(group, algorithm, preset),
        unknown=unknown,
        doubtful=doubtful,
    )


def paper_run(group: str) -> dict[str, Any]:
    """Return the paper's run settings for the tasks of a row."""
    return {"steps": 500_000} if group in D4RL else {"steps": 1_000_000, "success_timing": "after"}


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
    """Return the notes to show the user about settings that were made from a preset."""
    name = algorithm_name(config.algorithm)
    notes = preset_settings(config.task, type(config.algorithm), preset).notes
    if config.online_steps and preset in PRESETS and online_values(GROUP_OF_TASK.get(config.task), name) is not None:
        notes += (f"{name}: with online steps this task has settings of its own, in the preset {ONLINE}",)
    return notes


def family_rows(algorithm: str) -> list[FamilyRow]:
    """Return every row of an algorithm's settings, in the order of the tables; [] if the paper lacks the algorithm."""
    find_algorithm(algorithm)
    return [
        FamilyRow(
            benchmark="D4RL" if group in D4RL else "OGBench",
            family=group,
            tasks=tasks_of(group),
            settings={preset: task_settings(tasks_of(group)[0], algorithm, preset) for preset in PRESETS},
        )
        for group in (*OGBENCH, *D4RL)
        if algorithm in WITH_SETTINGS
    ]


def drol_row(group: str) -> str:
    """Return the row of DROL's table; door, hammer and relocate have one row for their three datasets."""
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


def table_values(group: str, algorithm: str, preset: str) -> dict[str, Any]:
    """Return the hyperparameters of a method by drol's names; None: unknown."""
    if algorithm not in ("drol", EQUATION, CONTROL):
        return baseline_values(group, algorithm)
    values = drol_values(group, preset)
    return {"alpha": values.pop("bc_weight"), **values} if algorithm == EQUATION else values


def baseline_values(group: str, algorithm: str) -> dict[str, Any]:
    """Return the hyperparameters of a baseline by drol's names; None: unknown."""
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
    if group in OGBENCH and algorithm in ("bc", "iql", "ifql"):  # the sources give no other widths
        values["hidden_sizes"] = (256 if algorithm == "iql" and data == "play" else 512,) * 4
    if group in OGBENCH and algorithm == "rebrac":
        values["mask_next_action"] = False  # as in the code that produced the published numbers
    return values


def pick(columns: Sequence[tuple[str, str]], row: Sequence[Any], algorithm: str) -> dict[str, Any]:
    return {name: cell for (method, name), cell in zip(columns, row, strict=True) if method == algorithm}


def remarks(group: str, algorithm: str, preset: str) -> list[str]:
    """Return notes on gaps and contradictions in the references."""
    here = {"all", group, "d4rl" if group in D4RL else OGBENCH[group][0]}
    notes = [f"{algorithm}: {words}" for names, where, words in REMARKS if algorithm in names and here & {*where}]
    printed, released = preset.replace("released", "paper"), preset.replace("paper", "released")
    if algorithm in ("drol", CONTROL) and (released, drol_row(group)) in DROL_DIFFERENCES:
        name, official = DROL_DIFFERENCES[released, drol_row(group)]
        notes.append(
            f"{algorithm}: {name} is {drol_values(group, printed)[name]} as printed (preset {printed}) "
            f"and {official} in the official commands (preset {released})"
        )
    return notes


def source(group: str, algorithm: str, preset: str) -> str:
    if algorithm in ("drol", EQUATION, CONTROL):
        return SOURCES[preset.removesuffix("-tuned")]
    if group in D4RL and algorithm in FROM_CORL:
        return SOURCES["corl"]
    if algorithm == "sorl" and baseline_values(group, algorithm)["q_weight"] is None:
        return SOURCES["not run"]
    if algorithm in SOURCES:
        return SOURCES[algorithm]
    online = group == "antsoccer-arena" and algorithm in ("iql", "rebrac", "ifql")  # also in the table of online tuning
    return SOURCES["antsoccer-arena" if online else "scan"]
