import pytest

from drol.bench.bench_figure import HERE, PUBLISHED, bench_figure

TRAINING = {"sorl": 8.6, "fql": 5.0, "deflow": 4.8, "drol K=1": 4.7, "drol K=16": 4.9}
ACTION = {"sorl": 0.53, "fql": 0.17, "drol": 0.16}
METHODS = {"drol": 90.0, "bc": 12.0, "fql": 88.0, "deflow": 110.0, "sorl": 180.0}


def results(methods=METHODS, ladder=("drol K=1", "drol K=4", "drol K=16")):
    """What `drol bench` would have measured."""
    return {
        "device": "CPU with 2 cores",
        "jax": "0.10.2",
        "preset": "paper",
        "rounds": 3,
        "seeds": 8,
        "methods": {
            name: {
                "update_milliseconds": [value, 0.9 * value, 1.2 * value],
                "updates_per_second": 1000 / value,
                "seeds_updates_per_second": 1500 / value,
                "action_milliseconds": [0.2, 0.21, 0.19],
            }
            for name, value in methods.items()
        },
        "ladder": {name: {"update_milliseconds": [60.0, 61.0, 62.0]} for name in ladder},
    }


def labels(axis):
    return [text.get_text().replace("\n", " ") for text in axis.get_ticklabels()]


def test_the_panels_are_all_methods_and_those_that_are_published(tmp_path):
    figure = bench_figure(results(), TRAINING, ACTION)
    updates, training, inference = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["updates a second", "one training step", "one action"]
    assert labels(updates.yaxis) == list(METHODS)
    assert labels(training.xaxis) == ["sorl", "fql", "deflow", "drol K=1", "drol K=16"]  # K=4 is not published
    assert labels(inference.xaxis) == ["sorl", "fql", "drol"]
    assert "CPU with 2 cores, jax 0.10.2, paper networks, 3 rounds" in figure.get_suptitle()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [HERE, "8 seeds at once, all of them together", PUBLISHED]
    assert "unstated hardware" in PUBLISHED
    figure.savefig(tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 10_000


def test_bars_are_medians_with_quartiles_and_the_published_numbers_hollow():
    _, training, _ = bench_figure(results(), TRAINING, ACTION).axes
    ours, published = training.containers[1], training.containers[2]  # the first are the error bars
    heights = [bar.get_height() for bar in ours]
    assert heights == [180.0, 88.0, 110.0, 61.0, 61.0]
    (segment, *_) = training.containers[0].lines[2][0].get_segments()
    assert segment[:, 1] == pytest.approx([171.0, 198.0])  # of 162, 180, 216
    assert [bar.get_height() for bar in published] == list(TRAINING.values())
    assert not any(bar.get_fill() for bar in published)


def test_what_was_not_measured_is_left_out():
    _, training, inference = bench_figure(results({"fql": 88.0}, ladder=()), TRAINING, ACTION).axes
    assert labels(training.xaxis) == labels(inference.xaxis) == ["fql"]
    _, training, inference = bench_figure(results({"bc": 12.0}, ladder=()), TRAINING, ACTION).axes
    for axes in (training, inference):
        assert [text.get_text() for text in axes.texts] == ["not measured"]


def test_one_round_has_no_spread():
    measured = results()
    for row in (*measured["methods"].values(), *measured["ladder"].values()):
        row["update_milliseconds"] = row["update_milliseconds"][:1]
    _, training, _ = bench_figure(measured, TRAINING, ACTION).axes
    for segment in training.containers[0].lines[2][0].get_segments():
        assert segment[0][1] == segment[1][1]
