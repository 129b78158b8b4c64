import json

import pytest
from toys import TINY

from drol.algorithms.bc import BC
from drol.data.random_dataset import random_dataset
from drol_reproduction.bench import timers
from drol_reproduction.bench.against import Against
from drol_reproduction.bench.methods import Speed, candidate_ladder, make_algorithms, share_of_bound
from drol_reproduction.bench.operations import update_operations

BC_SMALL = BC(hidden_sizes=(8, 8), batch_size=4)


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(timers, "TIMED_SECONDS", 1e-6)
    monkeypatch.setattr(timers, "CALLS", 4)
    monkeypatch.setattr(timers, "WARM_UP_CALLS", 1)


def test_a_row_for_each_method_and_the_other_values_of_k(hurry):
    updates = []
    dataset = random_dataset(rows=51, observation_size=3, action_size=2)
    algorithms = {"drol": TINY, "bc": BC_SMALL}
    speed = Speed(
        algorithms,
        candidate_ladder(algorithms, (1, 4)),
        dataset,
        2,
        Against("a:b", "theirs", lambda: updates.append(1)),
    )
    found = speed.measure(rounds=2)
    assert list(found["methods"]) == ["drol", "bc"]
    for name, row in found["methods"].items():
        assert list(row["actions_per_second"]) == ["1", "64", "1024"]
        assert len(row["update_milliseconds"]) == len(row["action_milliseconds"]) == 2
        assert row["latency_p50_milliseconds"] <= row["latency_p99_milliseconds"]
        assert row["gflop"] == update_operations(algorithms[name], dataset) / 1e9
        assert row["updates_per_second"] == pytest.approx(2000 / sum(row["update_milliseconds"]), rel=1)
    assert len(speed.calls["bc"]) == 3 * 4  # the round that compiles, and two that count
    drol, bc = found["methods"]["drol"], found["methods"]["bc"]
    assert drol["over_drol"] == 1
    rounds = zip(bc["update_milliseconds"], drol["update_milliseconds"], strict=True)
    assert bc["over_drol"] == pytest.approx(sum(ours / theirs for ours, theirs in rounds) / 2)  # the median of two
    assert list(found["ladder"]) == ["drol K=1", "drol K=4"]  # the last is DROL as it is
    assert found["ladder"]["drol K=4"]["update_milliseconds"] == drol["update_milliseconds"]
    assert found["ladder"]["drol K=1"]["gflop"] < found["ladder"]["drol K=4"]["gflop"]
    assert found["against"]["name"] == "theirs"
    assert list(found["against"]["ratio"]) == ["drol", "bc"]
    assert len(updates) >= 2 + 1 + 2
    json.dumps(found)


def test_nothing_is_compared_with_drol_where_it_is_not_measured(hurry):
    dataset = random_dataset(rows=51, observation_size=3, action_size=2)
    found = Speed({"bc": BC_SMALL}, {}, dataset, seeds=1).measure(rounds=1)
    assert found["methods"]["bc"]["over_drol"] is None
    assert found["ladder"] == {}
    assert "against" not in found


def test_the_presets_give_the_sizes_of_networks_and_drol_its_values_of_k():
    assert make_algorithms(["fql"], "paper")["fql"].to_dict()["hidden_sizes"] == (512,) * 4
    paper = make_algorithms(["drol"], "paper")
    assert make_algorithms(["drol"], "laptop")["drol"].to_dict()["hidden_sizes"] == (128,) * 3
    ladder = candidate_ladder(paper, (1, 16, 64))
    assert {name: each.to_dict()["num_candidates"] for name, each in ladder.items()} == {"drol K=1": 1, "drol K=64": 64}
    assert candidate_ladder(make_algorithms(["fql"], "paper"), (1, 64)) == {}


def test_the_share_of_the_bound_is_the_time_of_the_products_over_the_time_taken():
    assert share_of_bound([1.0, 2.0, 4.0], 100, [100.0, 100.0, 100.0]) == 0.5
