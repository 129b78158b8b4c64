from dataclasses import replace

import pytest
from made_results import made_result

from drol.errors import InputError
from drol_reproduction.figures.sensitivity import sensitivity_curves, sensitivity_figure

CUBE = "cube-single-play-singletask-task1-v0"


def sweep(scores, **changes):
    """The last evaluation of each seed, for each K."""
    return [
        made_result(task=CUBE, seed=seed, step=30, steps=30, score=score, settings={"num_candidates": k}, **changes)
        for k, own in scores.items()
        for seed, score in enumerate(own)
    ]


def test_curves_hold_one_pass_and_the_best_of_several():
    rows = sweep({1: [20, 30], 16: [80, 90]}) + sweep({1: [40], 16: [95]}, evaluation="extra", best_of=4)
    assert sensitivity_curves(rows) == {CUBE: {1: {1: [20, 30], 16: [80, 90]}, 4: {1: [40], 16: [95]}}}


def test_the_best_k_is_circled_and_the_published_curve_is_there():
    figure = sensitivity_figure(sweep({1: [20, 30], 4: [85, 95], 16: [80, 80]}))
    axes = figure.axes[0]
    circles = [line for line in axes.lines if line.get_markersize() == 11]
    assert [tuple(line.get_xydata()[0]) for line in circles] == [(4, 90)]
    published = axes.lines[0].get_xydata().tolist()
    assert published[3] == [8, 98]
    assert axes.get_title() == "cube-single-task1 (2 seeds)"


def test_a_hand_is_the_mean_of_its_datasets_beside_the_published_curve():
    rows = [
        replace(row, task=f"pen-{data}-v1", score=row.score + more)
        for data, more in (("human", 0), ("cloned", 30), ("expert", 60))
        for row in sweep({1: [60, 80], 16: [70, 90]}, score_name="normalised score")
    ]
    assert sensitivity_curves(rows) == {"pen": {1: {1: [90, 110], 16: [100, 120]}}}
    (axes,) = (axes for axes in sensitivity_figure(rows).axes if axes.get_title() == "pen (2 seeds)")
    assert axes.get_ylim()[1] > 120
    assert len(axes.lines[0].get_xydata()) == 6  # published
    assert sensitivity_curves(row for row in rows if "human" not in row.task) == {}


def test_one_k_is_no_sweep():
    with pytest.raises(InputError, match="no task has finished runs of two or more K"):
        sensitivity_figure(sweep({16: [50]}))
