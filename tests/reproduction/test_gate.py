import pytest
from made_results import made_result

from drol_reproduction.gate import CUBE, fql_gate, gate_table, gates, iql_gate
from drol_reproduction.protocol import paper_settings


def rows(method, updates, scores, **changes):
    return [
        made_result(
            task=CUBE, method=method, seed=seed, step=updates, steps=100_000, score=score,
            settings=dict(paper_settings(CUBE, method)) | changes,
        )
        for seed, score in enumerate(scores)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([48.0, 56.0, 60.0], "on the curve"),
        ([10.0, 12.0, 14.0], "below"),
        ([90.0, 92.0, 94.0], "above"),
        ([0.0, 30.0, 60.0], "below"),  # the interval holds 0, but the mean is 25 points lower
        ([50.0, 75.0, 100.0], "on the curve"),  # the plan limits only how far the mean may be below
        ([48.0, 56.0], "too few seeds"),
        ([], "too few seeds"),
    ],
)
def test_fql_is_compared_with_the_six_public_runs(scores, verdict):
    gate = fql_gate(rows("fql", 20_000, scores), 20_000)
    assert gate.verdict == verdict
    assert gate.passed == (verdict == "on the curve")
    assert sorted(gate.wanted) == [46, 50, 52, 54, 58, 72]


def test_the_interval_is_welchs():
    interval = fql_gate(rows("fql", 40_000, [80.0, 86.0, 88.0]), 40_000).interval
    assert interval is not None
    assert (interval.low + interval.high) / 2 == pytest.approx(84.6667 - 85, abs=1e-3)
    assert interval.high - interval.low == pytest.approx(2 * 8.3, abs=0.5)  # t of 2.9 degrees of freedom times 2.70


def test_runs_that_were_trained_otherwise_are_named_and_not_counted():
    small = rows("fql", 20_000, [50.0, 50.0, 50.0], hidden_sizes=[256, 256, 256])
    gate = fql_gate(small, 20_000)
    assert (gate.ours, gate.verdict, gate.left_out) == ((), "too few seeds", ("networks 3x256",))
    assert "not counted, trained otherwise: networks 3x256" in gate_table([gate])


@pytest.mark.parametrize(("score", "verdict"), [(60.0, "reached"), (58.0, "below")])
def test_iql_with_smaller_networks_needs_a_least_score(score, verdict):
    networks = {"hidden_sizes": [256, 256, 256]}
    assert iql_gate(rows("iql", 100_000, [score], **networks)).verdict == verdict
    faster = iql_gate(rows("iql", 100_000, [score], learning_rate=1e-3, **networks))
    assert (faster.verdict, faster.left_out) == ("too few seeds", ("rate 0.001",))


def test_the_table_has_a_row_for_each_gate():
    found = gates(rows("fql", 20_000, [48.0, 56.0, 60.0]))
    lines = gate_table(found).splitlines()[2:]
    assert lines[0].startswith("| fql after 20,000 | 55 (3) | 55 (6) | -1 |")
    assert [line.split(" | ")[-1] for line in lines] == ["on the curve |", "too few seeds |", "too few seeds |"]
