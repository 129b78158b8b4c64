import functools
import json
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fake_environments import Walk
from toys import TINY

from drol.algorithms.bc import BC
from drol.errors import InputError
from drol.experiments.bench import child as bench_child
from drol.experiments.bench import machine as bench_machine
from drol.experiments.bench import timers as bench
from drol.experiments.bench.methods import UPDATE_COLUMNS, candidate_ladder, make_algorithms, measure_speed

pytestmark = pytest.mark.usefixtures("quick_compile")

SMALL_BC = BC(hidden_sizes=(8, 8), batch_size=4)


@pytest.fixture(scope="module")
def dataset():
    return bench.random_dataset(rows=51, observation_size=3, action_size=2)


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(bench, "TIMED_SECONDS", 1e-6)
    monkeypatch.setattr(bench, "CALLS", 4)
    monkeypatch.setattr(bench, "WARM_UP_CALLS", 1)
    monkeypatch.setattr("drol.experiments.bench.methods.CALLS", 4)


def test_operations_of_products_are_counted_in_loops_branches_and_batches():
    a, b = jnp.ones((3, 5)), jnp.ones((5, 7))
    assert bench.matmul_operations(lambda a, b: a @ b + 1, a, b) == 2 * 3 * 5 * 7
    batched = functools.partial(jnp.einsum, "nij,njk->nik")
    assert bench.matmul_operations(batched, jnp.ones((4, 3, 5)), jnp.ones((4, 5, 7))) == 4 * 2 * 3 * 5 * 7

    def nine_times(a, b):
        return jax.lax.scan(lambda x, _: (x @ b, None), a, None, 9)[0]

    assert bench.matmul_operations(nine_times, a, jnp.ones((5, 5))) == 9 * 2 * 3 * 5 * 5

    def either(a, b):
        return jax.lax.cond(a[0, 0] > 0, lambda: a @ b @ b, lambda: a @ b)

    assert bench.matmul_operations(either, a, jnp.ones((5, 5))) == 2 * 2 * 3 * 5 * 5


def test_operations_of_an_update_are_those_of_its_layers(dataset):
    forward = 2 * 4 * (3 * 8 + 8 * 8 + 8 * 2)
    input_gradient = 2 * 4 * (8 * 8 + 8 * 2)  # the first layer needs none
    assert bench.update_operations(SMALL_BC, dataset) == 2 * forward + input_gradient


def test_the_random_dataset_is_as_large_as_asked(dataset):
    assert (dataset.size, dataset.spec.observation_shape, dataset.spec.action_size) == (50, (3,), 2)
    assert float(jnp.abs(dataset.action).max()) < 1
    assert dataset.observation.dtype == jnp.float32


def test_everything_is_timed_once_in_a_round_after_a_round_that_does_not_count():
    order, said = [], []

    def timer(name):
        def run():
            order.append(name)
            return float(len(order))

        return run

    found = bench.time_in_turn({"a": timer("a"), "b": timer("b")}, 3, lambda *words: said.append(words))
    assert order == ["a", "b"] * 4
    assert found == {"a": [3.0, 5.0, 7.0], "b": [4.0, 6.0, 8.0]}
    assert said[0] == ("compiling 1 of 2, a", 0, 6)
    assert said[-1] == ("round 3 of 3, b", 5, 6)


def test_the_bare_network_is_the_network_of_the_paper():
    act = bench.numpy_forward((8, 8), 5, 2)
    assert act(0).shape == (2,)
    assert act(0).dtype == np.float32
    np.testing.assert_array_equal(act(0), act(1))


def test_a_row_for_each_method_and_the_other_values_of_k(dataset, hurry):
    update_calls = []
    against = bench.Against("their:make", "theirs", lambda: update_calls.append(1))
    algorithms = {"drol": TINY, "bc": SMALL_BC}
    ladder = {"drol K=1": candidate_ladder(algorithms)["drol K=1"]}
    found = measure_speed(algorithms, ladder, dataset, rounds=2, seeds=2, against=against)
    assert set(found) == {"matmul_gflops", "numpy_forward_p50_milliseconds", "methods", "ladder", "against"}
    assert list(found["methods"]) == ["drol", "bc"]
    for row in found["methods"].values():
        assert set(row) == {
            *UPDATE_COLUMNS,
            "seeds_updates_per_second",
            "seeds_share_of_bound",
            "actions_per_second",
            "action_milliseconds",
            "latency_p50_milliseconds",
            "latency_p99_milliseconds",
            "latency_over_numpy",
        }
        assert list(row["actions_per_second"]) == ["1", "64", "1024"]
        assert len(row["update_milliseconds"]) == len(row["action_milliseconds"]) == 2
        assert row["latency_p50_milliseconds"] <= row["latency_p99_milliseconds"]
    assert list(found["ladder"]) == ["drol K=1", "drol K=4"]  # the last is DROL as it is
    assert found["ladder"]["drol K=4"]["update_milliseconds"] == found["methods"]["drol"]["update_milliseconds"]
    assert found["against"]["name"] == "theirs"
    assert list(found["against"]["ratio"]) == ["drol", "bc"]
    assert len(update_calls) >= 4
    json.dumps(found)


def test_the_presets_give_the_sizes_of_networks():
    assert make_algorithms(["fql"], "paper")["fql"].to_dict()["hidden_sizes"] == (512,) * 4
    laptop = make_algorithms(["drol"], "laptop")
    assert laptop["drol"].to_dict()["hidden_sizes"] == (128,) * 3
    assert list(candidate_ladder(laptop)) == ["drol K=1", "drol K=4", "drol K=16"]
    assert candidate_ladder(make_algorithms(["fql"], "paper")) == {}


THEIRS = """
    def good(): return lambda: None
    def named(): return (lambda: None), "another code"
    def number(): return 3
    def broken(): raise ValueError("no\\nGPU")
    def breaks_later():
        def update(): raise RuntimeError("lost")
        return update
"""


@pytest.fixture
def their_code(tmp_path, monkeypatch):
    (tmp_path / "their_code.py").write_text(textwrap.dedent(THEIRS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("their_code", None)


def test_the_update_of_other_code_comes_from_this_folder(their_code):
    assert bench.load_against("their_code:good").name == "their_code:good"
    assert bench.load_against("their_code:named").name == "another code"


WRONG = {
    "their_code": "--against is 'their_code'; it must be module:function",
    "their_code:": "--against is 'their_code:'; it must be module:function",
    "no_such_code:make": "--against no_such_code:make: there is no module 'no_such_code' here or installed",
    "their_code:absent": "module 'their_code' has no attribute 'absent'",
    "their_code:number": "--against their_code:number returned int; it must be a callable that updates once",
    "their_code:broken": "--against their_code:broken raised ValueError: no GPU",
}


@pytest.mark.parametrize(("place", "message"), WRONG.items(), ids=WRONG)
def test_other_code_that_cannot_be_used_is_one_line(their_code, place, message):
    with pytest.raises(InputError) as caught:
        bench.load_against(place)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_update_that_breaks_is_one_line(their_code):
    timer = bench.against_timer(bench.load_against("their_code:breaks_later"))
    with pytest.raises(InputError, match="the update of --against their_code:breaks_later raised RuntimeError: lost"):
        timer()


def test_training_in_this_process_says_what_it_took():
    request = {"rows": 301, "algorithm": "bc", "hyperparameters": SMALL_BC.to_dict()}
    answer = bench_child.train(json.loads(json.dumps(request)))
    assert answer["seconds_to_first_update"] > 0
    assert answer["dataset_bytes"] >= 300 * 4 * (29 + 8)
    assert answer["peak_memory_bytes"] >= answer["memory_stages"]["first_update_peak"] > 0


def test_a_child_answers_with_its_own_memory_and_with_what_went_wrong():
    with bench_machine.Child() as child, pytest.raises(InputError, match=r"cannot measure train: .*'dorl'"):
        child.ask(what="train", rows=11, algorithm="dorl", hyperparameters={})
    assert child.process.returncode == 0
    ballast = np.ones(50_000_000)  # which a new process must not be charged for
    code = "from drol.experiments.bench.child import resident; print(resident()[1])"
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    assert peak < ballast.nbytes


def test_a_child_that_dies_is_one_line():
    with bench_machine.Child() as child:
        child.process.kill()
        child.process.wait()
        with pytest.raises(InputError, match="the process that measures train ended with exit code -9"):
            child.ask(what="train")


def test_evaluation_counts_the_steps_of_episodes_that_are_cut(monkeypatch):
    monkeypatch.setattr(bench_child, "environment_maker", lambda task: functools.partial(Walk, "healthy"))
    monkeypatch.setattr(bench_child, "STEPS", 3)
    evaluation = bench_child.Evaluation({"cores": sorted(os.sched_getaffinity(0))[:2], "task": "toy"})
    try:
        request = {"algorithm": "bc", "hyperparameters": SMALL_BC.to_dict(), "episodes": 5}
        answer = evaluation.run(request)
    finally:
        evaluation.evaluator.stop()
    assert answer["steps"] == 5 * 3
    assert answer["seconds"] > 0


def test_one_core_two_and_all_are_measured(monkeypatch):
    for cores, expected in (({4}, [[4]]), ({1, 0}, [[0], [0, 1]]), ({0, 1, 2, 3}, [[0], [0, 1], [0, 1, 2, 3]])):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        assert bench_machine.cores_to_measure() == expected


def test_the_gain_of_two_cores_is_a_median_of_rounds():
    assert bench_machine.gain({"1": [1.0, 2.0, 4.0], "2": [2.0, 3.0, 4.0]}) == 1.5
    assert bench_machine.gain({"1": [1.0]}) is None


def test_an_ogbench_environment_needs_no_dataset():
    maker = bench_child.environment_maker("cube-single-play-singletask-task1-v0")
    assert maker.args == ("cube-single-singletask-task1-v0",)
    assert maker.keywords == {"frame_stack": 1}


class FakeChild:
    """Plays 100 steps an episode, at 1000 steps a second and core; fewer for iql."""

    asked: list

    def ask(self, what, **request):
        if what == "environments":
            self.cores = len(request["cores"])
            return {}
        self.asked.append((request["algorithm"], self.cores, request["episodes"]))
        steps = 100 * request["episodes"]
        rate = (50 if request["algorithm"] == "iql" else 1000) * self.cores
        return {"steps": steps, "seconds": steps / rate}

    def stop(self):
        self.asked.append("stop")


def test_every_number_of_cores_plays_in_turn_and_slow_methods_play_less(monkeypatch):
    FakeChild.asked = []
    monkeypatch.setattr(bench_machine, "Child", FakeChild)
    algorithms = make_algorithms(["bc", "iql"], "paper")
    found = bench_machine.measure_evaluation(algorithms, "toy", 50, rounds=2, seconds=20, cores=[[0], [0, 1]])
    start = [("bc", 1, 8), ("bc", 2, 8), ("iql", 1, 8), ("iql", 2, 8)]
    one_round = [("bc", 1, 50), ("bc", 2, 50), ("iql", 1, 10), ("iql", 2, 10)]  # 20 s of 50 steps are 10 episodes
    assert FakeChild.asked == [*start, *one_round, *one_round, "stop", "stop"]
    assert found["bc"] == {
        "evaluation_steps_per_second": {"1": pytest.approx(1000), "2": pytest.approx(2000)},
        "evaluation_episodes": 50,
        "evaluation_gain_of_two_cores": pytest.approx(2),
    }
    assert found["iql"]["evaluation_episodes"] == 10
