import csv

from shared_files import shared

from drol_reproduction.published.curves import (
    curve_sources,
    mean_curve,
    public_curves,
    public_points,
    tasks_with_curves,
)

CUBE = "cube-single-play-singletask-task2-v0"


def curve(source, task=CUBE):
    return mean_curve(next(points for each, points in public_curves(task).items() if each.name == source))


def test_facts_that_were_copied_by_hand():
    fql = curve("fql")
    assert [round(fql[updates]) for updates in (20_000, 40_000, 60_000, 80_000, 100_000)] == [55, 85, 91, 86, 80]
    assert [round(curve("doal-ifql")[updates]) for updates in (100_000, 200_000, 1_000_000)] == [57, 69, 89]
    assert round(curve("qc-fql", "cube-double-play-singletask-task1-v0")[200_000]) == 26
    assert curve("qam-rebrac", "antmaze-large-navigate-singletask-task1-v0")[50_000] == 56


def test_the_runs_about_the_papers_alpha_are_six():
    points = next(points for each, points in public_curves(CUBE).items() if each.name == "fql")
    runs = {(point.setting, point.seed) for point in points}
    assert {setting for setting, _ in runs} == {"alpha=216.8", "alpha=294.4", "alpha=399.6"}
    assert len(runs) == 6 == points[0].source.seeds
    assert {point.statistic for point in points} == {"run"}


def test_every_source_is_used_and_says_where_it_is_from_and_how_it_differs():
    assert {point.source.name for point in public_points()} == {*curve_sources()}
    for source in curve_sources().values():
        assert "/" in source.repository
        assert len(source.commit) == 7
        assert source.identical != bool(source.differs)
        assert "4x512" in source.protocol
    assert len(tasks_with_curves()) == 10


def test_no_point_is_there_twice_and_all_are_success_rates():
    keys = [(point.source.name, point.task, point.setting, point.seed, point.updates) for point in public_points()]
    assert len({*keys}) == len(keys)
    assert all(0 <= point.score <= 100 for point in public_points())


def test_the_points_are_those_that_were_collected():
    with shared("reference/public_curves.csv").open() as file:
        collected = {
            (row["task"], row["method"], int(row["steps"]), row["seed"], float(row["score"]))
            for row in csv.DictReader(file)
        }
    for point in public_points():
        if not point.source.name.startswith("qam"):
            key = (point.task, point.method, point.updates, str(point.seed or ""), point.score)
            assert key in collected
