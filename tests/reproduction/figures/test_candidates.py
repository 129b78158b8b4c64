import csv
import dataclasses
import json
from pathlib import Path

import pytest
from made_results import made_result
from matplotlib.figure import Figure
from toys import TINY, tiny_config, tiny_task

from drol.errors import InputError
from drol.training.train import train
from drol_reproduction.figures.candidates import (
    candidates_figure,
    diagnosed_results,
    diagnosed_runs,
    draw_times,
    find_sweeps,
    sweep_markdown,
    write_sweeps,
)

SCENE = "scene-play-singletask-task2-v0"
RESULTS = Path(__file__).parents[3] / "results"


def figures(distance, k):
    return {"candidate_distance": distance, "routed_bc_loss": 0.01 / k, "candidate_divergence": distance**2 / 2}


def rows(distances, step=30, **changes):
    made = [
        made_result(
            task=SCENE, seed=seed, step=step, steps=30, settings={"num_candidates": k}, figures=figures(distance, k)
        )
        for k, own in distances.items()
        for seed, distance in enumerate(own)
    ]
    return [dataclasses.replace(row, **changes) for row in made]


def sweeps(distances):
    return find_sweeps(diagnosed_results(rows(distances)))


def distances(results):
    sweep = find_sweeps(diagnosed_results(results))[SCENE]
    return sweep.step, sweep.values["candidate_distance"]


def test_the_last_updates_that_most_values_of_k_have_are_taken():
    early, late = rows({1: [0.0], 4: [0.9]}, step=10), rows({1: [0.0, 0.0], 4: [0.1, 0.3]})
    assert distances([*early, *late]) == (30, {1: [0.0, 0.0], 4: [0.1, 0.3]})
    stopped = rows({16: [0.7]}, step=10)
    assert distances([*early, *late, *stopped]) == (10, {1: [0.0], 4: [0.9], 16: [0.7]})
    without = rows({16: [0.7]}, figures={"candidate_distance": 9.0})
    assert distances([*early, *late, *without])[0] == 30


def test_runs_on_other_data_are_not_mixed():
    other = rows({1: [0.0], 4: [0.5]}, dataset_fingerprint="cd" * 32, seed=5)
    assert distances([*rows({1: [0.0, 0.0], 4: [0.1, 0.3]}), *other]) == (30, {1: [0.0, 0.0], 4: [0.1, 0.3]})


def test_the_mean_is_drawn_beside_the_published_curve():
    axes = candidates_figure(sweeps({1: [0.0, 0.0], 4: [0.1, 0.3]})).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[1, 0], [4, pytest.approx(0.2)]]
    assert axes.lines[1].get_xydata().tolist()[:2] == [[1, 0], [2, 0.039]]


def test_the_table_has_ours_beside_the_papers(tmp_path):
    found = sweeps({1: [0.0, 0.0], 4: [0.1, 0.3]})
    text = sweep_markdown(found)
    assert "| scene-task2 | 4 | 2 | 30 | 0.200 | 0.109 | 0.0025 | 0.0073 | 0.0250 |" in text
    assert "| scene-task2 | 64 | 0 | 30 | - | 0.217 | - | 0.0038 | - |" in text
    assert "after 1,000,000 updates, read off the figure on the authors' page" in text
    write_sweeps(found, tmp_path / "candidates.csv")
    with (tmp_path / "candidates.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["K"] for row in table] == ["1", "2", "4", "8", "16", "32", "64"]
    assert (table[2]["candidate_distance"], table[2]["candidate_distance_paper"]) == ("0.2", "0.109")
    assert table[6]["candidate_distance"] == ""


def test_run_times_of_a_bench_are_below():
    bench = json.loads((RESULTS / "bench.json").read_text())
    figure = candidates_figure(sweeps({1: [0.0], 4: [0.1]}), bench)
    names = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    assert {"drol\nK=16", "drol\nK=1", "sorl"} <= {*names}


def draw(measured):
    axes = Figure().subplots()
    draw_times(axes, measured, {"sorl": 8.6, "fql": 5.0, "drol K=1": 4.7}, "one training step")
    return axes


def test_bars_are_medians_with_quartiles_and_the_published_numbers_hollow():
    axes = draw({"drol K=1": [61.0], "sorl": [180.0, 162.0, 216.0], "drol K=4": [1.0]})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["sorl", "drol\nK=1"]  # in the published order
    errors, ours, published = axes.containers
    assert [bar.get_height() for bar in ours] == [180.0, 61.0]
    segments = errors.lines[2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx([171.0, 198.0])
    assert segments[1][:, 1] == pytest.approx([61.0, 61.0])  # one round has no spread
    assert [bar.get_height() for bar in published] == [8.6, 4.7]
    assert not any(bar.get_fill() for bar in published)


def test_times_that_were_not_measured_are_not_drawn():
    axes = draw({"bc": [12.0]})
    assert [text.get_text() for text in axes.texts] == ["not measured"]
    assert not axes.containers


def test_one_k_is_no_sweep():
    with pytest.raises(InputError, match="no task has runs of two or more K after the same updates"):
        candidates_figure(sweeps({4: [0.1]}))


def test_runs_that_played_no_episode_have_their_points(tmp_path):
    for count in (1, 2):
        algorithm = dataclasses.replace(TINY, num_candidates=count)
        config = tiny_config(algorithm=algorithm, seeds=(0,), evaluation_episodes=0)
        train(config, tmp_path / str(count), tiny_task(make_environment=pytest.fail), quiet=True)
    sweep = find_sweeps(diagnosed_runs([tmp_path, tmp_path / "results.csv"]))["toy"]
    assert sweep.step == 12
    distance = sweep.values["candidate_distance"]
    assert distance[1] == [0.0]
    assert distance[2][0] > 0
