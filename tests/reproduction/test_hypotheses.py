import itertools

import pytest
from made_results import made_result
from scipy import stats

from drol_reproduction.experiments import CUBE, SCENE
from drol_reproduction.hypotheses import (
    figure_table,
    hypothesis_tables,
    label_of,
    one_group,
    outcomes,
    permutation,
    planned_groups,
    planned_runs,
    runs_table,
    settings_of,
    verdict_of,
    welch,
)


def rows_of(scores, scale="medium", task=CUBE[0], method="drol", figures=None, **settings):
    """The last three evaluations of every seed of a planned run, all with one score."""
    run = one_group(planned_groups([]), scale, task, method, **settings).run
    return [
        made_result(
            task=task, method=method, seed=seed, step=step, steps=run.steps, score=score,
            settings=settings_of(run), figures=figures or {}, run=f"{run.label}/{seed}",
        )
        for seed, score in enumerate(scores)
        for step in (run.steps - 20_000, run.steps - 10_000, run.steps)
    ]  # fmt: skip


DROL = [80.0, 82.0, 84.0, 86.0, 88.0]
FROZEN = [60.0, 62.0, 64.0, 66.0, 68.0]


def by_name(rows):
    return {each.name: each for each in outcomes(planned_groups(rows))}


def test_the_planned_runs_are_those_of_the_plan():
    found = {(run.preset, run.task, label_of(run)): (len(run.seeds), run.steps) for run in planned_runs()}
    assert found["short", CUBE[0], "FQL"] == (3, 40_000)
    assert found["medium", CUBE[0], "IQL"] == (1, 100_000)
    assert found["medium", CUBE[0], "drol-control, winner lagged"] == (5, 60_000)
    assert found["medium", SCENE[0], "DROL(1)"] == (3, 200_000)
    assert found["short", SCENE[0], "DROL(64)"] == (1, 20_000)
    assert len(found) == len(planned_runs())


def test_a_hypothesis_is_tested_when_all_planned_seeds_are_finished():
    control = rows_of(FROZEN, method="drol-control", winner="lagged")
    early = by_name(rows_of(DROL[:4], num_candidates=16) + control)["H1"]
    assert (early.verdict, early.p, early.first) == ("not finished", None, tuple(DROL[:4]))
    done = by_name(rows_of(DROL, num_candidates=16) + control)
    expected = 4.24409e-6  # scipy.stats.ttest_ind(DROL, FROZEN, equal_var=False, alternative="greater")
    assert done["H1"].p == pytest.approx(expected, rel=1e-5)
    assert done["H1"].corrected == pytest.approx(4 * expected, rel=1e-5)  # the other three are open and count
    assert done["H1"].verdict == "supported"
    assert done["H2"].verdict == "not finished"
    unfinished = [row for row in rows_of(DROL, num_candidates=16) if row.seed < 4 or row.step < 60_000]
    assert by_name(unfinished + control)["H1"].verdict == "not finished"


def test_runs_with_other_settings_do_not_count():
    rows = rows_of(DROL, num_candidates=16)
    other = [made_result(**{**vars(row), "settings": {"num_candidates": 8}}) for row in rows]
    assert by_name(other)["H1"].first == ()
    assert by_name(rows)["H1"].first == tuple(DROL)


def test_three_seeds_are_supported_only_without_correction():
    k16 = rows_of([60.0, 62.0, 64.0], task=SCENE[0], num_candidates=16)
    k1 = rows_of([20.0, 22.0, 24.0], task=SCENE[0], num_candidates=1)
    found = by_name(k16 + k1)["H3"]
    assert (found.p, found.corrected, found.verdict) == (0.05, 0.2, "only without correction")
    near = rows_of([55.0, 56.0, 57.0], task=SCENE[0], num_candidates=1)
    assert by_name(k16 + near)["H3"].verdict == "not supported"  # less than 10 points
    assert verdict_of("H4", [60.0], [55.0], 0.01, 0.04) == "supported"
    assert verdict_of("H4", [60.0], [55.0], 0.06, 0.24) == "not supported"


def test_the_tests_are_one_sided():
    assert permutation([3.0, 4.0, 5.0], [0.0, 1.0, 2.0]) == 1 / 20
    assert permutation([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]) == 1
    assert permutation([1.0, 1.0], [1.0, 1.0]) == 1
    values = list(itertools.permutations([2.0, 5.0, 6.0, 9.0]))[5]
    scipy = stats.permutation_test(
        (values[:2], values[2:]), lambda x, y: x.mean() - y.mean(), alternative="greater", vectorized=False
    )
    assert permutation(values[:2], values[2:]) == pytest.approx(scipy.pvalue)
    assert welch([9.0, 9.0, 9.0], [1.0, 1.0, 1.0]) == 1 / 20
    assert welch([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) > 0.95


def test_the_table_of_runs_shows_what_is_finished_beside_the_published_score():
    lines = runs_table(planned_groups(rows_of([60.0, 62.0], task=SCENE[0], num_candidates=16))).splitlines()
    assert "| scene-task2 | DROL(16) | medium | 200,000 | 2 of 3 | 61±1 | 69±12 |" in lines
    assert "| scene-task2 | DROL(1) | medium | 200,000 | 0 of 3 | - | - |" in lines  # the paper prints no cell


def test_figure_3_is_decided_when_all_values_of_k_are_there():
    def figures(count, distance, loss):
        return rows_of(
            [50.0], "short", SCENE[0], figures={"candidate_distance": distance, "routed_bc_loss": loss},
            num_candidates=count,
        )  # fmt: skip

    rows = figures(1, 0.0, 0.009) + figures(4, 0.1, 0.008) + figures(16, 0.2, 0.006)
    text = figure_table(planned_groups(rows))
    assert "| 16 | 0.200 | 0.199 | 0.0060 | 0.0050 |" in text
    assert "M4: not finished; finished: K = 1, K = 4, K = 16 of K = 1, 4, 16, 64." in text
    assert "M4: passed" in figure_table(planned_groups(rows + figures(64, 0.3, 0.004)))
    assert "M4: failed; the distance does not grow and the loss falls" in figure_table(
        planned_groups(rows + figures(64, 0.2, 0.004))
    )


def test_without_runs_all_is_open():
    tables = hypothesis_tables([])
    assert tables["hypotheses"].count("not finished") == 4
    assert tables["runs"].count("| 0 of ") == len(planned_runs()) - 4  # figure 3 has a separate table
