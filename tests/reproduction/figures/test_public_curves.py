import pytest
from made_results import made_result

from drol.errors import InputError
from drol_reproduction.figures.public_curves import curves_caption, curves_figure, make_panels
from drol_reproduction.protocol import paper_settings

CUBE = "cube-single-play-singletask-task2-v0"


def runs(method="fql", task=CUBE, seeds=(0, 1, 2), **changes):
    return [
        made_result(
            task=task, method=method, seed=seed, step=step, steps=40_000, score=score + 2 * seed,
            settings=dict(paper_settings(task, method)) | changes,
        )
        for seed in seeds
        for step, score in ((20_000, 50.0), (40_000, 80.0))
    ]  # fmt: skip


def labels(panels):
    return [line.get_label() for line in curves_figure(panels).axes[0].lines if line.get_label()[0] != "_"]


def test_each_seed_is_thin_their_mean_thick_and_the_public_mean_dashed():
    lines = curves_figure(make_panels(runs())).axes[0].lines
    assert len(lines) == 3 + 1 + 1
    assert [line.get_linewidth() for line in lines] == [0.6, 0.6, 0.6, 2, 1.2]
    assert lines[3].get_xydata().tolist() == [[20_000, 52], [40_000, 82]]
    assert lines[4].get_xydata().tolist()[1] == [40_000, 85]
    assert lines[3].get_color() == lines[4].get_color()


def test_the_axes_go_from_0_to_100_and_the_legend_is_beside_them():
    axes = curves_figure(make_panels(runs())).axes[0]
    assert axes.get_ylim() == (0, 100)
    assert axes.get_legend().get_bbox_to_anchor().x0 > axes.bbox.x1


def test_a_public_curve_of_another_protocol_is_drawn_on_request_and_labelled():
    panels = make_panels(runs())
    assert labels(panels) == [
        "ours: fql (3 seeds), the paper's settings",
        "public: FQL, alpha 217 to 400 (6 runs), the paper's protocol",
    ]
    assert "drawn with --other-protocols: IFQL (DOAL)" in curves_caption(panels, runs())
    every = labels(make_panels(runs(), other_protocols=True))
    assert len(every) == 8
    assert [("OTHER PROTOCOL" in label) for label in every] == [False, False, *[True] * 6]


def test_runs_with_other_networks_are_not_shown_beside_public_ones_unless_asked():
    small = runs(hidden_sizes=[256, 256, 256])
    assert labels(make_panels(small)) == ["ours: fql (3 seeds), networks 3x256"]
    every = labels(make_panels(small, other_protocols=True))
    assert "public: FQL, alpha 217 to 400 (6 runs), OTHER PROTOCOL than ours: the paper's" in every


def test_values_of_k_and_settings_are_curves_of_their_own():
    rows = [*runs("drol", num_candidates=1), *runs("drol"), *runs("drol", bc_weight=7.0)]
    assert labels(make_panels(rows))[:3] == [
        "ours: drol K=1 (3 seeds), the paper's settings",
        "ours: drol K=16 (3 seeds), the paper's settings",
        "ours: drol K=16 (3 seeds), bc_weight 7",
    ]


def test_a_task_without_public_curves_says_so_in_one_line():
    maze = runs(task="pointmaze-medium-navigate-singletask-task1-v0")
    caption = curves_caption(make_panels([*runs(), *maze]), [*runs(), *maze])
    assert "no public curve: pointmaze-medium-task1; there are some for: antmaze-large-task1, " in caption
    with pytest.raises(InputError, match="no run is of a task with public curves, which are: antmaze-large"):
        make_panels(maze)
