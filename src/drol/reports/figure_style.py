"""The style of drol's figures. Matplotlib's settings change only while a figure is drawn or saved."""

import functools
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure

from drol.storage import write_whole

INK, MUTED, GRID = "#1d2530", "#6b7685", "#e4e8ee"
REACHED, MISSED, GOAL = "#0b7a75", "#d1495b", "#edae49"
SERIES = ("#0b7a75", "#d1495b", "#30638e", "#edae49", "#6a4c93", "#8d6a9f", "#4f772d", "#bc4b51")

Arguments = ParamSpec("Arguments")

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "drol",  # deterministic files
}


def figure_style() -> AbstractContextManager[None]:
    """Return a context in which matplotlib uses the style."""
    return mpl.rc_context(STYLE)


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Decorate a function that returns a figure, so that it uses the style."""

    @functools.wraps(draw)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Figure:
        with figure_style():
            return draw(*arguments, **named)

    return call


def save_figure(figure: Figure, path: Path, dpi: int = 160) -> None:
    """Save a figure in the style; matplotlib creates ticks and text only now."""
    content = io.BytesIO()
    with figure_style():
        figure.savefig(content, dpi=dpi, format=path.suffix.removeprefix(".") or None)
    write_whole(path, content.getvalue())


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element for a page."""
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def thousands(value: float, _: float | None = None) -> str:
    """Format the number of a tick briefly: 500, 20k, 1M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
