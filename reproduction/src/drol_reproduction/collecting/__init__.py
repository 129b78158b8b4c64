"""Collect the datasets of OGBench and D4RL on this machine, by playing episodes."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

from drol.errors import InputError, unknown_name
from drol.progress import Report
from drol.tasks.catalogue import all_datasets
from drol.tasks.d4rl import names as d4rl_names
from drol.tasks.ogbench import recipes
from drol.tasks.source import wrap_names
from drol_reproduction.collecting.collected import default_path

D4RL_HELP = f"""D4RL (.hdf5):
{wrap_names(d4rl_names.COLLECTABLE)}
All need one --expert, in one process and in one go: an ant that walks, or a hand of hand_dapg."""


class Collector(NamedTuple):
    """The collecting of the datasets of one benchmark."""

    names: tuple[str, ...]
    suffix: str  # file name extension of the datasets
    help: str  # text about its datasets in `drol data collect --help`
    module: str  # module with the function `collect`; imported when it is used


COLLECTORS = (
    Collector(recipes.COLLECTABLE, ".npz", recipes.HELP, f"{__name__}.ogbench.collect"),
    Collector(d4rl_names.COLLECTABLE, ".hdf5", D4RL_HELP, f"{__name__}.d4rl"),
)


class CollectOptions(TypedDict, total=False):
    """Options of `collect`."""

    episodes: int | None  # the number to play; default: the number of trajectories in the published dataset
    seed: int  # equal seeds give equal arrays; default: 0
    processes: int | None  # the number of parallel processes; default: depends on the machine
    experts: Sequence[Path]  # folders of expert policies, if the dataset needs them
    report: Report | None  # called as `report(done, total, what)` after each trajectory


def find_collector(name: str) -> Collector:
    """Return the collector of a dataset."""
    found = next((each for each in COLLECTORS if name in each.names), None)
    if found is not None:
        return found
    for _, entry in all_datasets():
        if name == entry.name:
            raise InputError(f"{name} cannot be collected; get it by {' or '.join(entry.ways) or 'other means'}")
    names = [each for collector in COLLECTORS for each in collector.names]
    raise unknown_name("dataset", name, names, "`drol data collect --help` names all that can be collected")


def collect(name: str, path: Path | None = None, **options: Unpack[CollectOptions]) -> dict[Path, int]:
    """Collect a dataset; each episode becomes a trajectory.

    Args:
        name: The name of the dataset.
        path: The file to write; None: a file in the current folder, named after the dataset and the experts.
        options: See `CollectOptions`.

    Returns:
        The files that were written, with the number of transitions of each.

    Raises:
        KeyboardInterrupt: After Ctrl-C. Its message reports the data that are kept, if there are any.
    """
    collector = find_collector(name)
    path = path or default_path(name, collector.suffix, options.get("experts", ()))
    return importlib.import_module(collector.module).collect(name, path, **options)
