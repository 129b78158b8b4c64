import dataclasses

import pytest
from made_mechanism import made_row, made_rows

from drol_reproduction.mechanism_verdicts import label_of, mechanism_tables, mechanism_verdicts


def verdicts(rows):
    return {each.name: each.verdict for each in mechanism_verdicts(rows)}


def changed(condition, **changes):
    """Return the made rows with changes to each row that satisfies a condition."""
    return [dataclasses.replace(row, **changes) if condition(row) else row for row in made_rows()]


def without_q(row):
    return row.setting("q_weight") == 0


def test_rows_as_the_paper_claims_pass():
    assert verdicts(made_rows()) == {"M1": "passed", "M2": "passed", "M3": "passed"}
    found = mechanism_verdicts(made_rows())[0]
    assert found.where == "cube-single-task2, 4x512"
    assert found.reason.endswith("DROL(16) 91% (90% to 92%), FQL 20%, DROL without Q 28%")


def one_seed(row):
    return row.method == "drol" and row.seed == 1


@pytest.mark.parametrize(
    ("name", "condition", "changes"),
    [
        ("M1", lambda row: one_seed(row) and row.lag == 1_000, {"changed": 0.47}),  # 19 points above DROL without Q
        ("M1", lambda row: row.method == "fql" and row.seed == 1, {"changed": 0.75}),
        ("M2", lambda row: one_seed(row) and row.lag == 100, {"rose_changed": 0.5}),
        ("M2", lambda row: one_seed(row) and row.lag == 100, {"nearest_if_kept": 0.37}),
        ("M3", one_seed, {"spread": 0.29}),
    ],
)
def test_one_seed_is_enough_to_fail(name, condition, changes):
    expected = {"M1": "passed", "M2": "passed", "M3": "passed", name: "failed"}
    assert verdicts(changed(condition, **changes)) == expected


def test_controls_that_are_missing_leave_the_verdict_open_unless_another_fails_it():
    kept = [row for row in made_rows() if not without_q(row)]
    assert verdicts(kept)["M1"] == "not measured"
    low = [dataclasses.replace(row, changed=0.1) if row.method == "drol" else row for row in kept]
    assert verdicts(low)["M1"] == "failed"
    assert verdicts([]) == dict.fromkeys(("M1", "M2", "M3"), "not measured")
    assert verdicts([made_row("fql")]) == dict.fromkeys(("M1", "M2", "M3"), "not measured")


def test_other_weights_networks_and_older_checkpoints_do_not_decide():
    strong = made_row("fql", changed=0.95, settings={"alpha": 3.0})
    small = made_row("fql", changed=0.95, settings={"hidden_sizes": [256, 256, 256]})
    older = made_row(changed=0.1, step=10_000)
    one = made_row(spread=0.0, settings={"num_candidates": 1})
    found = mechanism_verdicts([*made_rows(), strong, small, older, one])
    assert {each.verdict for each in found if each.where == "cube-single-task2, 4x512"} == {"passed"}
    assert [each.verdict for each in found if each.where.endswith("3x256")] == ["not measured"] * 3


def test_labels_say_what_sets_a_run_apart():
    assert label_of(made_row()) == "DROL(16)"
    assert label_of(made_row(settings={"num_candidates": 4, "q_weight": 0.0})) == "DROL(4), without Q"
    assert label_of(made_row(settings={"bc_weight": 1.0})) == "DROL(16), bc_weight 1"
    assert label_of(made_row("drol-control", settings={"winner": "lagged"})) == "DROL(16), lagged winner"
    assert [label_of(made_row("fql", settings={"alpha": alpha})) for alpha in (300.0, 30.0)] == ["FQL", "FQL, alpha 30"]


def test_tables_have_a_line_for_each_method_and_dashes_where_nothing_was_measured():
    tables = mechanism_tables(made_rows())
    owners = [line.split(" | ")[1:] for line in tables["owners"].splitlines()[2:]]
    assert owners[0][:3] == ["DROL(16)", "2", "40,000"]
    assert owners[0][3:] == ["-", "-", "31% (30% to 32%) [0.60]", "-", "91% (90% to 92%) [0.60]", "- |"]
    assert [line[0] for line in owners] == ["DROL(16)", "DROL(16), without Q", "FQL"]
    assert "| 62% | 51% | 50% | 0.377 | 0.370 | 0.410 |" in tables["events"]
    assert "| 0.80 | 30% | 60% | 10% |" in tables["regimes"]
    assert mechanism_tables([])["owners"] == "No run has been measured yet."
