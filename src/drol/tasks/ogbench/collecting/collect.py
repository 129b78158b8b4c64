"""Collect OGBench datasets with the oracles of its package, or with expert policies, in parallel processes.

Trajectory n of a collection depends on (seed, n) alone, so the arrays do not depend on the number of processes, on
their order or on interruptions.
"""

import dataclasses
import importlib.metadata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from drol.errors import InputError
from drol.machine import available_cores
from drol.tasks.experts import Expert, read_expert
from drol.tasks.ogbench.collecting.recipes import Recipe, find_recipe
from drol.tasks.ogbench.collecting.team import Team
from drol.tasks.ogbench.collecting.unfinished import UnfinishedCollection, unfinished_folder
from drol.tasks.packages import missing_package

if TYPE_CHECKING:
    from drol.progress import Report

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")  # whose versions may change the arrays
# The size of an action, and how many numbers an expert is shown for each kind of input.
EXPERT_SIZES = {
    "ant": (8, {"observation": 29, "ogbench-direction": 29}),
    "humanoid": (21, {"observation": 69, "ogbench-direction": 69}),
    "soccer": (8, {"observation": 42, "ogbench-direction": 29, "ogbench-ball": 42}),
}


def collect(
    dataset_name: str,
    path: Path,
    *,
    episodes: int | None = None,
    seed: int = 0,
    processes: int | None = None,
    experts: Sequence[Path] = (),
    rows: int | None = None,
    report: "Report | None" = None,
    note: Callable[[str], None] | None = None,
) -> dict[Path, int]:
    """Write the trajectories of `episodes` episodes in OGBench's format, and a tenth as many more to `<name>-val.npz`.

    The same call after an interruption goes on. `rows` shortens the trajectories; `TaskSource.collect` explains the
    other arguments.
    """
    recipe = find_recipe(dataset_name)
    recipe = dataclasses.replace(recipe, rows=recipe.rows if rows is None else rows)
    episodes = recipe.trajectories if episodes is None else episodes
    processes = available_cores() if processes is None else processes
    limits = (("episodes", episodes, 1), ("seed", seed, 0), ("processes", processes, 1), ("rows", recipe.rows, 2))
    for name, value, least in limits:
        if value < least:
            raise InputError(f"{name} is {value}; it must be at least {least}")
    if path.suffix != ".npz":
        raise InputError(f"the file to write is {path}; its name must end with .npz")
    loaded = tuple(read_expert(each) for each in experts)
    check_experts(dataset_name, recipe, loaded)
    claim = {"name": dataset_name, "seed": seed, "rows": recipe.rows, "experts": [each.digest() for each in loaded]}
    claim["versions"] = package_versions()
    unfinished = UnfinishedCollection(unfinished_folder(path))
    total = episodes + max(1, episodes // 10)
    targets = {path: range(episodes), path.with_name(f"{path.stem}-val.npz"): range(episodes, total)}
    for target in targets:
        if target.exists() and not unfinished.is_joining:
            raise InputError(f"{target} exists already; choose another --out, nothing was written")
    with unfinished.locked():
        unfinished.claim(claim)
        lengths, damaged = unfinished.finished(total)
        if note:
            for name in damaged:
                note(f"{name} is damaged and is collected again")
            if lengths:
                note(f"going on after {len(lengths)} of {total} trajectories")
        try:
            with Team(processes, (recipe, loaded, seed, unfinished.folder)) as team:
                collect_missing(team, lengths, total, report)
            unfinished.join(targets)
        except KeyboardInterrupt as stop:
            kept = f"{len(lengths)} of {total} trajectories are in {unfinished.folder}, the same command goes on"
            raise KeyboardInterrupt(kept) from stop
    return {target: sum(lengths[number] - 1 for number in numbers) for target, numbers in targets.items()}


def collect_missing(team: Team, lengths: dict[int, int], total: int, report: "Report | None") -> None:
    """Collect the trajectories that are not in `lengths` yet, and enter the rows of each."""
    transitions = 0
    if report:
        report(len(lengths), total, "")
    for collected in team.collect([number for number in range(total) if number not in lengths]):
        lengths[collected.number] = collected.rows
        transitions += collected.rows - 1
        if report:
            report(len(lengths), total, f"{transitions:,} transitions")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that make the arrays."""
    try:
        return {package: importlib.metadata.version(package) for package in PACKAGES}
    except importlib.metadata.PackageNotFoundError as error:
        raise missing_package("OGBench", "ogbench", error) from error


def check_experts(dataset_name: str, recipe: Recipe, experts: Sequence[Expert]) -> None:
    """Refuse experts that are missing, too many, or made for something else."""
    if not recipe.needs_expert:
        if experts:
            raise InputError(f"{dataset_name} is collected by an oracle of OGBench; leave --expert out")
        return
    if not experts:
        raise InputError(
            f"{dataset_name} needs a policy that can walk: --expert FOLDER with policy.npz and policy.json; "
            "`drol data expert --help` makes one from a file of weights"
        )
    action_size, inputs = EXPERT_SIZES[recipe.body]
    for expert in experts:
        if expert.input not in inputs:
            raise InputError(
                f"an expert's input is {expert.input}; for {dataset_name} it must be {' or '.join(inputs)}"
            )
        if (expert.input_size, expert.action_size) != (inputs[expert.input], action_size):
            raise InputError(
                f"an expert takes {expert.input_size} numbers and answers with {expert.action_size}; "
                f"with input {expert.input}, {dataset_name} needs {inputs[expert.input]} and {action_size}"
            )
    is_dribbler = Counter(expert.input == "ogbench-ball" for expert in experts)
    if is_dribbler[False] != 1 or is_dribbler[True] > 1:
        allowed = "one that walks and perhaps one with input ogbench-ball" if recipe.body == "soccer" else "one"
        raise InputError(f"{len(experts)} experts were given; {dataset_name} needs {allowed}")
