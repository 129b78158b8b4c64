import json
from pathlib import Path

import pytest
from made_results import made_result

from drol.errors import InputError
from drol.paper.figures.candidates import candidates_figure, figures_by_candidates

SCENE = "scene-play-singletask-task2-v0"
RESULTS = Path(__file__).parents[3] / "results"


def figures(distance, k):
    return {"candidate_distance": distance, "routed_bc_loss": 0.01 / k, "candidate_divergence": distance**2 / 2}


def sweep(distances):
    return [
        made_result(
            task=SCENE, seed=seed, step=30, steps=30, settings={"num_candidates": k}, figures=figures(distance, k)
        )
        for k, own in distances.items()
        for seed, distance in enumerate(own)
    ]


def test_the_figures_at_the_end_of_training_are_taken():
    early = made_result(
        task=SCENE, step=10, steps=30, settings={"num_candidates": 4}, figures={"candidate_distance": 9.0}
    )
    found = figures_by_candidates([early, *sweep({1: [0.0, 0.0], 4: [0.1, 0.3]})])
    assert found[SCENE]["candidate_distance"] == {1: [0.0, 0.0], 4: [0.1, 0.3]}


def test_the_mean_is_drawn_beside_the_published_curve():
    axes = candidates_figure(sweep({1: [0.0, 0.0], 4: [0.1, 0.3]})).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[1, 0], [4, pytest.approx(0.2)]]
    assert axes.lines[1].get_xydata().tolist()[:2] == [[1, 0], [2, 0.039]]


def test_run_times_of_a_bench_are_below():
    bench = json.loads((RESULTS / "bench.json").read_text())
    figure = candidates_figure(sweep({1: [0.0], 4: [0.1]}), bench)
    names = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    assert {"drol\nK=16", "drol\nK=1", "sorl"} <= {*names}


def test_one_k_is_no_sweep():
    with pytest.raises(InputError, match="no task has finished runs of two or more K"):
        candidates_figure(sweep({4: [0.1]}))
