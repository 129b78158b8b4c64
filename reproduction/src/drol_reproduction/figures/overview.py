"""Figure 1 of the paper, computed: the effect of Q's gradient on a sample tied to its teacher and on a routed sample.

    tied    |x_k - t_k|^2 - alpha Q(x_k)       each sample has its own teacher t_k           (FQL.actor_loss)
    routed  |x_k* - a|^2  - alpha Q(x_k*)      each data action a trains its nearest sample  (DROLEquation)

Both start from the same samples and take the same number of gradient steps of the training losses, on free points at
one state. Only the support, the critic and the highlighted data action are chosen by hand.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch
from scipy.spatial import Voronoi

from drol.algorithms.drol_equation import DROLEquation
from drol.reports.figure_style import GOAL, INK, MISSED, MUTED, REACHED, SERIES, save_figure, styled
from drol_reproduction.propositions.propositions import routed_gradient, tether_gradient, uniform_disc

SUPPORT, PEAK = np.asarray([0.55, 0.85]), np.asarray([0.1, 0.5])  # half axes of an ellipse; the maximum of Q
SAMPLES, STEPS = 20, 80
ALPHA, RATE = 0.1, 0.25  # the paper's alpha; the step size of one sample for the loss as printed
LOOKED_AT = np.asarray([0.2, -0.5])  # a2 is the teacher nearest to this point
ARROW = 3.0  # factor by which drawn gradients are longer
PUSH, PULL, HANDOFF = GOAL, MISSED, REACHED


def critic(observation: Array, action: Array) -> Array:  # noqa: ARG001
    """Return `-sqrt(0.04 + |a - peak|^2)`, a cone with a round tip, as an ensemble of one."""
    return -jnp.sqrt(0.04 + jnp.square(action - PEAK).sum(-1))[None]


def value(points: np.ndarray) -> np.ndarray:
    """Return Q of actions [..., 2]."""
    return np.asarray(critic(jnp.zeros(1), jnp.asarray(points)))[0]


@dataclass(frozen=True)
class Overview:
    """Samples over the steps of both losses, [step, sample, 2], with the data and the teachers."""

    data: np.ndarray  # [data, 2]
    teachers: np.ndarray  # [sample, 2], the data action nearest to each sample at the start
    tied: np.ndarray
    routed: np.ndarray
    target: int  # index of a2 in `data`; a2 is the teacher of the selected sample
    selected: int  # index of the selected sample

    def owner(self, step: int) -> int:
        """Return the routed sample that is nearest to a2."""
        return int(np.square(self.routed[step] - self.data[self.target]).sum(-1).argmin())

    @property
    def handoff(self) -> int:
        """The first step at which a2 trains another sample; the last one if there is none."""
        return next((step for step in range(len(self.routed)) if self.owner(step) != self.selected), STEPS)

    def distance(self, samples: np.ndarray) -> float:
        """Return the distance from a2 to its nearest sample."""
        return float(np.linalg.norm(samples - self.data[self.target], axis=-1).min())

    def gap(self, samples: np.ndarray) -> float:
        """Return the mean distance from a data action to its nearest sample."""
        return float(np.linalg.norm(self.data[:, None] - samples, axis=-1).min(1).mean())

    def caption(self) -> str:
        """Return the figure's numbers in sentences."""
        start = self.routed[0]
        parts = [
            f"{SAMPLES} samples, {len(self.data)} data actions, {len(self.routed) - 1} gradient steps of both losses "
            f"from one start, with the same weight of Q.",
            f"Before: Q of the selected sample {value(start[self.selected]):.2f}, from a2 to its nearest sample "
            f"{self.distance(start):.2f}, from data to nearest sample {self.gap(start):.3f} in the mean.",
        ]
        for name, samples in (("tied", self.tied[-1]), ("routed", self.routed[-1])):
            parts.append(
                f"After, {name}: {value(samples[self.selected]):.2f}, {self.distance(samples):.2f}, "
                f"{self.gap(samples):.3f}."
            )
        parts.append(
            f"At step {self.handoff} another sample is nearer to a2 and is trained by it from then on. Arrows are "
            f"gradients, {ARROW:g} times as long."
        )
        return " ".join(parts)


@functools.partial(jax.jit, static_argnames=("gradient", "steps"))
def descend(gradient: Callable[[Array], Array], samples: Array, steps: int) -> Array:
    """Follow a gradient; return the samples before every step and after the last one, [step, sample, 2]."""

    def step(samples: Array, _: None) -> tuple[Array, Array]:
        moved = samples - RATE * SAMPLES * gradient(samples)
        return moved, moved

    return jnp.concatenate([samples[None], jax.lax.scan(step, samples, None, steps)[1]])


def compute_overview(steps: int = STEPS) -> Overview:
    """Spread samples over the data with only routed cloning, then follow both losses."""
    data = SUPPORT * uniform_disc(400, 0)

    def routed(alpha: float) -> Callable[[Array], Array]:
        return lambda samples: routed_gradient(DROLEquation(alpha=alpha), samples, critic, data)

    def tied(samples: Array) -> Array:  # FQL weighs the pull by its alpha and takes the mean of two components
        return ALPHA * tether_gradient(2 / ALPHA, samples, critic, teachers)

    start = descend(routed(0.0), jnp.asarray(SUPPORT * uniform_disc(SAMPLES, 1), jnp.float32), 60)[-1]
    nearest = np.square(np.asarray(start)[:, None] - data).sum(-1).argmin(1)
    teachers = data[nearest]
    selected = int(np.square(teachers - LOOKED_AT).sum(-1).argmin())
    paths = (np.asarray(descend(gradient, start, steps), np.float64) for gradient in (tied, routed(ALPHA)))
    return Overview(data, teachers, *paths, target=int(nearest[selected]), selected=selected)


def make_overview(folder: Path) -> str:
    """Draw the figure into a folder as overview.png; return its caption."""
    overview = compute_overview()
    save_figure(overview_figure(overview), folder / "overview.png")
    return overview.caption()


@styled
def overview_figure(overview: Overview) -> Figure:
    """Draw the tied and the routed panel, which start from the same samples."""
    figure = Figure(figsize=(8.8, 7.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for panel in (left, right):
        draw_support(panel, overview.data)
    draw_tied(left, overview)
    draw_routed(right, overview)
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    named = {handle.get_label(): handle for handle in handles}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


def draw_support(panel: Any, data: np.ndarray) -> None:
    """Draw the support of the data, contours of Q and the direction in which Q rises."""
    width, height = 2 * SUPPORT
    panel.add_patch(Ellipse((0, 0), width, height, facecolor="#f3f5f8", edgecolor=MUTED, lw=0.8, zorder=0))
    panel.scatter(*data.T, s=4, color=MUTED, alpha=0.35, lw=0, zorder=1)
    grid = np.stack(np.meshgrid(np.linspace(-0.75, 0.75, 90), np.linspace(-1, 1, 120)), -1)
    panel.contour(
        *np.moveaxis(grid, -1, 0),
        value(grid),
        levels=9,
        colors=SERIES[2],
        linewidths=0.6,
        linestyles="-",
        alpha=0.3,
        zorder=1,
    )
    panel.annotate("", (-0.68, 0.55), (-0.68, -0.55), arrowprops={"arrowstyle": "-|>", "color": MUTED, "lw": 1.4})
    panel.text(-0.71, 0, "higher Q", rotation=90, ha="right", va="center", color=MUTED)
    panel.set(xlim=(-0.82, 0.68), ylim=(-0.92, 0.92), aspect="equal", xticks=[], yticks=[])
    panel.grid(False)
    panel.spines[:].set_visible(False)


def draw_tied(panel: Any, overview: Overview) -> None:
    """Draw the tied samples at rest, and the two gradients of the selected one, which cancel."""
    teachers, k = overview.teachers, overview.selected
    point = overview.tied[-1, k]
    for teacher, end in zip(teachers, overview.tied[-1], strict=True):
        panel.plot(*np.stack([teacher, end]).T, color=PULL, lw=0.8, alpha=0.7, zorder=2)
    panel.scatter(*teachers.T, marker="^", s=20, facecolor="white", edgecolor=INK, lw=0.7, zorder=3)
    draw_samples(panel, overview, overview.tied)
    draw_arrow(panel, point, ALPHA * slope(point), PUSH, "Q push")
    draw_arrow(panel, point, 2 * (teachers[k] - point), PULL, "fixed correspondence: pull of its own teacher")
    panel.set_title("Pointwise: each sample is tied to its own teacher")
    panel.set_xlabel(outcome_text(overview, overview.tied[-1], "pulled back to the inherited action"))


def draw_routed(panel: Any, overview: Overview) -> None:
    """Draw the routed samples with their cells, the gradients of the selected one, and the new owner of a2."""
    k, owner = overview.selected, overview.owner(-1)
    samples, point = overview.routed[-1], overview.routed[-1, k]
    draw_cells(panel, samples, owner)
    for path in np.swapaxes(overview.routed, 0, 1):
        panel.plot(*path.T, color=SERIES[2], lw=0.7, alpha=0.5, zorder=2)
    draw_samples(panel, overview, overview.routed)
    panel.plot(*overview.routed[:, owner].T, color=HANDOFF, lw=2.2, zorder=5)
    label = f"local handoff: $a_2$ trains this one from step {overview.handoff}"
    panel.scatter(*samples[owner], s=46, color=HANDOFF, edgecolor="white", lw=0.8, zorder=6, label=label)
    winner = np.square(overview.data[:, None] - samples).sum(-1).argmin(1)
    draw_arrow(panel, point, ALPHA * slope(point), PUSH, "Q push")
    pull = 2 * (overview.data[winner == k].mean(0) - point)
    draw_arrow(panel, point, pull, SERIES[4], "pull of the data that it wins now")
    panel.set_title("Routed: each data action trains its nearest sample")
    panel.set_xlabel(outcome_text(overview, samples, "support kept without a fixed pull-back"))


def draw_samples(panel: Any, overview: Overview, path: np.ndarray) -> None:
    """Draw the final samples, the start and the path of the selected sample, and two reference actions."""
    k = overview.selected
    others = np.delete(path[-1], k, 0)
    panel.scatter(*others.T, s=26, color=SERIES[2], edgecolor="white", lw=0.8, zorder=4, label="other samples")
    panel.plot(*path[:, k].T, "-", color=INK, lw=1.3, zorder=4)
    panel.scatter(*path[0, k], s=40, color=INK, lw=0, zorder=5, label="selected sample, before")
    after = {"facecolor": "white", "edgecolor": INK, "lw": 1.6, "label": "selected sample, after"}
    panel.scatter(*path[-1, k], s=60, zorder=8, **after)
    best = overview.teachers[value(overview.teachers).argmax()]
    for name, action in (("$a_1$", best), ("$a_2$", overview.teachers[k])):
        style = {"facecolor": "none", "edgecolor": INK, "lw": 1.3, "label": "reference action"}
        panel.scatter(*action, marker="^", s=90, zorder=7, **style)
        panel.annotate(name, action, (-21, -4), textcoords="offset points", fontsize=11, zorder=9)


def draw_cells(panel: Any, samples: np.ndarray, owner: int) -> None:
    """Draw the borders of the samples' cells inside the support, and colour one sample's cell."""
    inside = Ellipse((0, 0), *2 * SUPPORT, transform=panel.transData)
    far = 9 * np.asarray([[1, 0], [-1, 0], [0, 1], [0, -1]])  # distant points that close every sample's cell
    cells = Voronoi(np.concatenate([samples, far]))
    borders = LineCollection(
        [cells.vertices[pair] for pair in cells.ridge_vertices if -1 not in pair],
        colors=MUTED, linewidths=0.8, linestyles="--", alpha=0.8, zorder=2,
    )  # fmt: skip
    borders.set_clip_path(inside)
    panel.add_collection(borders)
    (cell,) = panel.fill(
        *cells.vertices[cells.regions[cells.point_region[owner]]].T, color=HANDOFF, alpha=0.2, zorder=1
    )
    cell.set_clip_path(inside)


def draw_arrow(panel: Any, start: np.ndarray, gradient: np.ndarray, colour: str, label: str) -> None:
    """Draw a gradient as an arrow that has a name in the legend."""
    end = start + ARROW * gradient
    shape = {"arrowstyle": "-|>", "mutation_scale": 13, "shrinkA": 4, "shrinkB": 0}
    panel.add_patch(FancyArrowPatch(tuple(start), tuple(end), color=colour, lw=2.4, zorder=7, **shape))
    panel.plot([], [], "-", color=colour, lw=2.4, label=label)


def slope(point: np.ndarray) -> np.ndarray:
    """Return the gradient of Q at an action [2]."""
    return np.asarray(jax.grad(lambda x: critic(x, x[None])[0, 0])(jnp.asarray(point, jnp.float32)), np.float64)


def outcome_text(overview: Overview, samples: np.ndarray, verdict: str) -> str:
    """Return the Q of the selected sample and the distances from the data to samples, before and after the steps."""
    k, start = overview.selected, overview.routed[0]
    return (
        f"{verdict}\nQ of the selected sample {value(start[k]):.2f} → {value(samples[k]):.2f}\n"
        f"from $a_2$ to its nearest sample {overview.distance(start):.2f} → {overview.distance(samples):.2f}\n"
        f"from all data, in the mean, {overview.gap(start):.3f} → {overview.gap(samples):.3f}"
    )
