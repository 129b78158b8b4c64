"""Collect OGBench datasets with the oracles of its package, or with expert policies, in parallel processes.

Trajectory n depends only on (seed, n), so the arrays do not depend on the number of processes, on their order or on
interruptions.
"""

import dataclasses
import importlib.metadata
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from drol.errors import InputError
from drol.machine import available_cores
from drol.tasks.ogbench.recipes import Recipe, find_recipe
from drol.tasks.packages import missing_package
from drol_reproduction.collecting.collected import record_path, write_record
from drol_reproduction.collecting.ogbench.team import Team
from drol_reproduction.collecting.ogbench.unfinished import UnfinishedCollection, unfinished_folder
from drol_reproduction.experts.expert import Expert, read_expert

if TYPE_CHECKING:
    from drol.progress import Report

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")  # packages whose versions may change the arrays
# The size of an action, and the input size of an expert for each type of input.
EXPERT_SIZES = {
    "ant": (8, {"observation": 29, "ogbench-direction": 29}),
    "humanoid": (21, {"observation": 69, "ogbench-direction": 69}),
}


logger = logging.getLogger(__name__)


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
) -> dict[Path, int]:
    """Collect `episodes` trajectories in OGBench's format, and a tenth as many for `<name>-val.npz`.

    `<name>.json` records the recipe, the experts and the hashes of the arrays. After an interruption, the same call
    resumes. `rows` sets the length of trajectories; `TaskSource.collect` explains the other arguments.
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
    claim["versions"] = versions = package_versions()
    unfinished = UnfinishedCollection(unfinished_folder(path))
    total = episodes + max(1, episodes // 10)
    targets = {path: range(episodes), path.with_name(f"{path.stem}-val.npz"): range(episodes, total)}
    for target in (*targets, record_path(path)):
        if target.exists() and not unfinished.is_joining:
            raise InputError(f"{target} exists already; choose another --out, nothing was written")

    def transitions() -> dict[Path, int]:
        return {target: sum(lengths[number] - 1 for number in numbers) for target, numbers in targets.items()}

    def record() -> None:
        settings = {"recipe": dataclasses.asdict(recipe), "episodes": episodes, "seed": seed}
        write_record(dataset_name, transitions(), **settings, experts=experts, versions=versions)

    with unfinished.locked():
        unfinished.claim(claim)
        lengths, damaged = unfinished.finished(total)
        for name in damaged:
            logger.warning(f"{name} is damaged and is collected again")
        if lengths:
            logger.info(f"going on after {len(lengths)} of {total} trajectories")
        try:
            with Team(processes, (recipe, loaded, seed, unfinished.folder)) as team:
                collect_missing(team, lengths, total, report)
            unfinished.join(targets, record)
        except KeyboardInterrupt as stop:
            kept = f"{len(lengths)} of {total} trajectories are in {unfinished.folder}, the same command resumes"
            raise KeyboardInterrupt(kept) from stop
    return transitions()


def collect_missing(team: Team, lengths: dict[int, int], total: int, report: "Report | None") -> None:
    """Collect the trajectories that are not in `lengths`, and add the number of rows of each to `lengths`."""
    transitions = 0
    if report:
        report(len(lengths), total, "")
    for collected in team.collect([number for number in range(total) if number not in lengths]):
        lengths[collected.number] = collected.rows
        transitions += collected.rows - 1
        if report:
            report(len(lengths), total, f"{transitions:,} transitions")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that affect the arrays."""
    try:
        return {package: importlib.metadata.version(package) for package in PACKAGES}
    except importlib.metadata.PackageNotFoundError as error:
        raise missing_package("OGBench", "ogbench", error) from error


def check_experts(dataset_name: str, recipe: Recipe, experts: Sequence[Expert]) -> None:
    """Raise `InputError` if experts are missing, superfluous or unsuitable."""
    if not recipe.needs_expert:
        if experts:
            raise InputError(f"{dataset_name} is collected by an oracle of OGBench; leave --expert out")
        return
    if not experts:
        raise InputError(
            f"{dataset_name} needs a policy that can walk: --expert FOLDER with policy.npz and policy.json; "
            "`drol data train-expert ant` trains an ant, `drol data expert --help` makes one from a file of weights"
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
    if len(experts) > 1:
        raise InputError(f"{len(experts)} experts were given; {dataset_name} needs one")
