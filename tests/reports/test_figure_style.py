import subprocess
import sys

import matplotlib as mpl
import pytest
from full_disk import largest_file
from matplotlib.figure import Figure

from drol.reports.figure_style import MUTED, STYLE, figure_style, save_figure, styled, svg_of, thousands

IMPORT_EVERYTHING = """
import importlib, pkgutil
import matplotlib as mpl
before = dict(mpl.rcParams)
import drol
for module in pkgutil.walk_packages(drol.__path__, "drol."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
changed = {name for name, value in mpl.rcParams.items() if before[name] != value}
assert not changed, changed
"""


@styled
def a_figure():
    figure = Figure()
    figure.subplots().plot([0, 1], [0, 1])
    return figure


def test_no_import_of_ours_changes_matplotlib():
    answer = subprocess.run([sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_style_holds_while_a_figure_is_drawn_and_no_longer():
    before = dict(mpl.rcParams)
    seen = styled(lambda: dict(mpl.rcParams))()
    assert {name: seen[name] for name in ("svg.hashsalt", "axes.grid", "font.size")} == {
        "svg.hashsalt": "drol", "axes.grid": True, "font.size": 9.0,
    }  # fmt: skip
    assert dict(mpl.rcParams) == before
    with pytest.raises(ZeroDivisionError):
        styled(lambda: 1 / 0)()
    assert dict(mpl.rcParams) == before
    assert not a_figure().axes[0].spines["top"].get_visible()


def test_every_setting_is_one_of_matplotlib():
    assert set(STYLE) <= set(mpl.rcParams)


def test_a_saved_figure_has_the_style_and_is_the_same_each_time(tmp_path):
    first, second = svg_of(a_figure()), svg_of(a_figure())
    assert first == second  # the salt of its identifiers is fixed when it is saved
    assert first.startswith("<svg")
    assert MUTED in first  # ticks are made when the figure is saved
    assert "<text" in first  # words stay words
    save_figure(a_figure(), tmp_path / "a.png", dpi=50)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with figure_style():
        assert mpl.rcParams["svg.fonttype"] == "none"


def test_numbers_of_ticks_are_short():
    assert [thousands(value) for value in (0, 500, 20_000, 1_500_000)] == ["0", "500", "20k", "1.5M"]


def test_a_figure_that_does_not_fit_on_the_disk_leaves_the_old_one(tmp_path):
    path = tmp_path / "figure.png"
    path.write_text("old")
    with largest_file(1000), pytest.raises(OSError, match="File too large") as caught:
        save_figure(a_figure(), path)
    assert caught.value.filename == str(path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("figure.png", "old")]
