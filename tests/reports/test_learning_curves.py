import math

from made_results import made_group

from drol.reports.learning_curves import MEAN, POINTS, learning_charts, legend_of, metric_charts, plain_number, thinned
from drol.results.groups import make_groups


def test_numbers_are_short_and_finite():
    assert [plain_number(value) for value in (1 / 3, 12345.678, -0.0, None, math.nan, math.inf)] == [
        0.33333, 12346.0, 0.0, None, None, None,
    ]  # fmt: skip


def test_of_many_steps_some_are_kept_and_the_last_always():
    assert thinned([3, 6, 9], 3) == [3, 6, 9]
    kept = thinned(range(0, 1001), 11)
    assert kept == list(range(0, 1001, 100))


def test_one_group_has_a_line_for_each_seed_and_one_for_the_mean():
    (chart,) = learning_charts(make_groups(made_group("drol", [10, 30])), ["drol"], [0, 1])
    assert [(line["group"], line["label"], line["y"]) for line in chart["series"]] == [
        (0, "seed 0", [20.0]), (1, "seed 1", [60.0]), (MEAN, "mean", [40.0]),
    ]  # fmt: skip
    assert chart["percent"]
    assert legend_of(["drol"], [0, 1]) == [{"label": "seed 0"}, {"label": "seed 1"}, {"label": "mean", "colour": MEAN}]
    (alone,) = learning_charts(make_groups(made_group("drol", [10])), ["drol"], [0])
    (line,) = alone["series"]
    assert line["low"][0] < 20 < line["high"][0]  # Wilson's, of its episodes


def test_groups_share_the_legend_and_each_task_has_a_chart():
    rows = made_group("drol", [10, 30]) + made_group("fql", [5, 5]) + made_group("fql", [50], task="other")
    charts = learning_charts(make_groups(rows), ["drol", "fql"], [0, 1])
    assert [chart["title"] for chart in charts] == ["maze", "other"]
    means = [(line["group"], line["y"]) for line in charts[0]["series"] if not line.get("thin")]
    assert means == [(0, [40.0]), (1, [10.0])]
    assert [line["group"] for line in charts[1]["series"]] == [1]


def test_a_page_of_very_many_lines_has_fewer_points_of_each():
    points = dict.fromkeys(range(2000), 1.0)
    groups = [(str(group), {f"m{number}": {0: points} for number in range(40)}) for group in range(10)]
    charts = metric_charts(groups, [label for label, _ in groups], [0])
    total = sum(len(line["x"]) for chart in charts for line in chart["series"])
    assert total <= POINTS
    assert all(line["x"][-1] == 1999 for chart in charts for line in chart["series"])


def test_metrics_come_in_the_order_in_which_they_are_read():
    values = {name: {0: {1: 1.0}} for name in ("validation/a", "diagnostics/b", "loss")}
    charts = metric_charts([("drol", values)], ["drol"], [0])
    assert [chart["name"] for chart in charts] == ["loss", "diagnostics/b", "validation/a"]
