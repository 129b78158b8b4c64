"""What the DROL paper printed: its two tables, the points of its figures, and where these contradict each other.

The tables are as printed; `sensitivity.csv` and `candidates.csv` were read off figures 4 and 3 (+-2%).
"""

import csv
import functools
from importlib import resources
from typing import NamedTuple

PUBLISHED_SEEDS = 8  # of the FQL paper's protocol; the DROL paper does not say how many it ran
READ_OFF = "read off the published figure, +-2%"


class Published(NamedTuple):
    """A printed cell: mean and, where there is one, deviation over seeds."""

    mean: float
    deviation: float | None


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of this package."""
    with resources.files(__name__).joinpath(f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@functools.cache
def task_cells() -> dict[tuple[str, str], Published]:
    """Return the cells of the table of all tasks, by task and method."""
    return {(row["task"], row["method"]): cell(row) for row in read_rows("tasks") if row["mean"]}


@functools.cache
def family_cells() -> dict[tuple[str, str], Published]:
    """Return the cells of the table of families, by family and method."""
    return {(row["family"], row["method"]): cell(row) for row in read_rows("families") if row["mean"]}


def cell(row: dict[str, str]) -> Published:
    return Published(float(row["mean"]), float(row["deviation"]) if row["deviation"] else None)


@functools.cache
def sensitivity() -> dict[str, dict[int, float]]:
    """Return the curves of figure 4, read off it: score by K, for each task (for Adroit, by the name of the hand's)."""
    curves: dict[str, dict[int, float]] = {}
    for row in read_rows("sensitivity"):
        curves.setdefault(row["panel"], {})[int(row["candidates"])] = float(row["score"])
    return curves


@functools.cache
def candidate_curves() -> dict[str, dict[str, dict[int, float]]]:
    """Return the curves of figure 3, read off it: task -> name of the figure -> K -> value."""
    curves: dict[str, dict[str, dict[int, float]]] = {}
    for row in read_rows("candidates"):
        for name in ("candidate_distance", "routed_bc_loss"):
            if row[name]:
                curves.setdefault(row["task"], {}).setdefault(name, {})[int(row["candidates"])] = float(row[name])
    return curves


def published_updates(task: str) -> int:
    """Return for how many updates the published scores of a task were trained."""
    return 500_000 if task.endswith(("-v1", "-v2")) else 1_000_000


# What does not fit together in the printed numbers: (family, method) -> words. Shown as footnotes of the tables.
REMARKS = {
    ("antsoccer-arena", "deflow"): "printed 67, but the mean of its printed tasks is 62.2; 62 would not be bold",
    ("cube-double", "sorl"): "printed 25; the mean of its printed tasks is 26.0, at the limit of rounding",
    ("antmaze (D4RL)", "rebrac"): "printed 78; the mean of its printed tasks is 78.67",
    ("antmaze-large", "drol*"): "the same K as DROL(16), yet four of five tasks differ: a separate run",
    (
        "humanoidmaze-medium",
        "drol*",
    ): "the same K as DROL(16), yet all tasks differ, by up to 12: a separate run",
    ("cube-single", "drol*"): "the same K as DROL(16), yet four of five tasks differ: a separate run",
    ("puzzle-3x3", "drol*"): "K is 32 where DROL(16) has 16, yet all five cells are identical",
    (
        "antmaze (D4RL)",
        "drol*",
    ): "on large-play and large-diverse the same K as DROL(16), yet other scores: there alpha differs",
}
GENERAL_REMARKS = (
    "the published deviations of families follow two conventions: most are over seeds of the family's mean, those of "
    "DROL(16) on D4RL and most of DROL* are means of the tasks' deviations",
    f"the DROL paper does not say how many seeds it ran; {PUBLISHED_SEEDS} are assumed",
    "the best K of the published figure 4 is not K* for antmaze-large (1, K* is 16), humanoidmaze-large (8 and 4) and "
    "humanoidmaze-medium (8 and 16); K* is 64 for three families, which the figure does not show",
    "the text says that large navigation families gain most from a large K; table and figure say the reverse",
    "figure 4 and the table differ at the same K = 16: D4RL antmaze-medium-play 79 and 84, medium-diverse 81 and 72",
    "published D4RL cells of BC, IQL and ReBRAC are copied from CORL: other networks, twice the updates",
)
