import pytest
from made_results import made_group, made_result

from drol.results.groups import choose, make_groups


def label_of(*results):
    return [group.label for group in make_groups(results)]


def test_a_label_names_what_differs_on_a_task_and_nothing_else():
    assert label_of(made_result(settings={"bc_weight": 0.1}), made_result(method="fql")) == ["drol", "fql"]
    tuned = made_result(settings={"bc_weight": 0.1}), made_result(task="cube", settings={"bc_weight": 0.3})
    assert label_of(*tuned) == ["drol", "drol"]  # one choice for each task
    given = made_result(settings={"bc_weight": 0.1, "hidden_sizes": [8, 8]}), made_result(settings={"bc_weight": 0.1})
    assert label_of(*given) == ["drol hidden_sizes=8x8", "drol hidden_sizes=512x512x512x512"]
    assert label_of(made_result(best_of=4), made_result(best_of=16)) == ["drol best_of=4", "drol best_of=16"]
    unknown = {"method": "theirs"}
    found = label_of(made_result(settings={"width": 3}, **unknown), made_result(**unknown))
    assert found == ["theirs width=3", "theirs width=default"]


def test_seeds_of_several_runs_are_one_group():
    (group,) = make_groups([made_result("11"), made_result("10", seed=1, run="runs/two")])
    assert group.scores.tolist() == [100, 50]


def rows(*scores, seed=0):
    return [made_result(seed=seed, step=10 * step, score=score) for step, score in enumerate(scores)]


def steps_of(chosen):
    return {seed: [row.step for row in own] for seed, own in chosen.items()}


def test_which_evaluations_count():
    given = [*rows(0, 90, 20, 40, 60), *rows(0, 10, 80, 40, 50, seed=1)]
    assert steps_of(choose(given, "last")) == {0: [40], 1: [40]}
    assert steps_of(choose(given, "last3")) == {0: [20, 30, 40], 1: [20, 30, 40]}
    assert steps_of(choose(given, "best")) == {0: [40], 1: [40]}  # the mean over seeds: 50, 50, 40, 55
    (group,) = make_groups(given, "last3")
    assert group.scores.tolist() == pytest.approx([40, 170 / 3])


def test_the_policy_before_any_update_is_none_of_the_last_three():
    assert steps_of(choose(rows(0, 50, 60), "last3")) == {0: [10, 20]}
    assert steps_of(choose(rows(0), "last3")) == {0: [0]}


def test_the_interval_is_that_of_wilson_at_least_and_of_the_seeds_if_they_differ_more():
    (alone,) = make_groups(made_group("drol", [40]))
    assert alone.interval == pytest.approx((66.96, 88.76), abs=0.01)  # statsmodels: 40 of 50
    (same,) = make_groups(made_group("drol", [50, 50, 50]))
    assert same.interval == pytest.approx((97.50, 100), abs=0.01)
    (different,) = make_groups(made_group("drol", [0, 25, 50]))
    assert different.interval == (0, 100)
    (other,) = make_groups([made_result(score_name="return")])
    assert other.interval is None


def test_successes_are_paired_by_the_seed_of_the_episode():
    (group,) = make_groups([made_result("110"), made_result("010", seed=1, first_episode_seed=0)])
    assert group.successes_by_episode == {0: 0.5, 1: 1, 2: 0}
