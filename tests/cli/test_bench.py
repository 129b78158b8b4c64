"""`drol bench`: what it prints and writes, and how it answers mistakes. What it measures is tested beside it."""

import json
import math

import pytest

from drol.cli import bench
from drol.cli.main import main
from drol.experiments.bench.timers import Against

MACHINE = {"device": "CPU with 4 cores", "platform": "cpu", "cores": 4, "jax": "0.10.2"}
SPEED = {
    "update_milliseconds": [100.0, 90.0],
    "updates_per_second": 10.5,
    "gflop": 13.1,
    "share_of_bound": 0.7,
    "seeds_updates_per_second": 1312.0,
    "seeds_share_of_bound": 0.8,
    "actions_per_second": {"1": 5000.0, "64": 61000.0, "1024": 412345.0},
    "action_milliseconds": [0.2, 0.2],
    "latency_p50_milliseconds": 0.19,
    "latency_p99_milliseconds": 0.31,
    "latency_over_numpy": 1.27,
}
START = {
    "compile_seconds": 12.34,
    "compile_seconds_from_cache": 1.2,
    "peak_memory_bytes": 920_000_000,
    "peak_device_memory_bytes": None,
}
EVALUATION = {
    "evaluation_steps_per_second": {"1": 1000.0, "2": 1850.0, "4": 3400.0},
    "evaluation_episodes": 50,
    "evaluation_gain_of_two_cores": 1.85,
}


@pytest.fixture
def measured(monkeypatch):
    """Instead of measuring; the arguments of every call."""
    calls = {}

    def start(algorithms, say):
        calls["start"] = list(algorithms)
        say("bc: start", 0, 2)
        return dict.fromkeys(algorithms, START)

    def evaluation(algorithms, task, episodes, rounds, seconds, say):
        calls["evaluation"] = (task, episodes, rounds, seconds)
        return dict.fromkeys(algorithms, EVALUATION)

    def speed(algorithms, ladder, dataset, rounds, seeds, against, say):
        calls["speed"] = (list(algorithms), list(ladder), rounds, seeds, against)
        answer = {"matmul_gflops": 201.0, "numpy_forward_p50_milliseconds": 0.15}
        answer |= {"methods": dict.fromkeys(algorithms, SPEED), "ladder": dict.fromkeys(ladder, SPEED)}
        if against:
            ratio = dict.fromkeys(algorithms, 0.5)
            answer["against"] = {"place": against.place, "name": against.name, "milliseconds": 200.0, "ratio": ratio}
        return answer

    monkeypatch.setattr(bench, "measure_start", start)
    monkeypatch.setattr(bench, "measure_evaluation", evaluation)
    monkeypatch.setattr(bench, "measure_speed", speed)
    monkeypatch.setattr(bench, "describe_machine", lambda: MACHINE)
    monkeypatch.setattr(bench, "prepare_jax", lambda: None)
    return calls


def test_the_table_has_a_row_for_each_method_and_the_ratios_below(measured, capsys):
    assert main(["bench", "--methods", "drol", "bc", "--rounds", "2"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "CPU with 4 cores, jax 0.10.2, paper networks, 2 rounds"
    cells = "10.5 1,312.0 70% 5,000 61,000 412,345 0.19 0.31 1,000 1,850 3,400 0.92 12.3 1.2"
    assert " ".join(lines[4].split()) == f"drol {cells}"
    assert " ".join(lines[5].split()) == f"bc {cells}"
    assert lines[2].split()[:4] == ["updates", "8", "seeds", "of"]
    assert "4 cores" in lines[3]
    assert "two cores over one: drol 1.85, bc 1.85" in printed.out
    assert "the bare network in NumPy takes 0.15 ms (p50); an action takes, in these: drol 1.27, bc 1.27" in printed.out
    assert "an update of drol K=1: 95.2 ms, drol K=4: 95.2 ms, drol K=8: 95.2 ms" in printed.out
    assert "memory and compile time: bc: start" in printed.err
    assert measured["evaluation"] == ("pointmaze-medium-navigate-singletask-task1-v0", 50, 2, 6.0)


def test_numbers_and_figure_are_written(measured, capsys, tmp_path):
    arguments = ["bench", "--methods", "fql", "--parts", "speed", "--seeds", "3", "--preset", "laptop"]
    arguments += ["--json", str(tmp_path / "speed.json"), "--figure", str(tmp_path / "speed.png")]
    assert main(arguments) == 0
    found = json.loads((tmp_path / "speed.json").read_text())
    assert set(found) == {
        *MACHINE, "preset", "rounds", "seeds", "matmul_gflops", "numpy_forward_p50_milliseconds", "ladder", "methods",
    }  # fmt: skip
    assert found["methods"] == {"fql": SPEED}
    assert (tmp_path / "speed.png").stat().st_size > 10_000
    assert capsys.readouterr().out.endswith(f"wrote {tmp_path / 'speed.json'}\nwrote {tmp_path / 'speed.png'}\n")
    assert measured == {"speed": (["fql"], [], 5, 3, None)}


def test_quick_measures_less_unless_more_is_asked_for(measured):
    assert main(["bench", "--quick"]) == 0
    assert measured["start"] == ["drol", "fql"]
    assert measured["evaluation"][1:] == (8, 2, 6.0)
    assert main(["bench", "--episodes", "20", "--parts", "evaluation"]) == 0
    assert measured["evaluation"][1:] == (20, 3, math.inf)  # as many as were asked for, however long it takes
    assert measured["speed"] == (["drol", "fql"], [], 2, 8, None)
    assert main(["bench", "--quick", "--methods", "iql", "--rounds", "4", "--parts", "speed"]) == 0
    assert measured["speed"] == (["iql"], [], 4, 8, None)


def test_other_code_is_compared(measured, capsys, monkeypatch):
    against = Against("their_code:make_update", "theirs", lambda: None)
    monkeypatch.setattr(bench, "load_against", lambda place: against)
    assert main(["bench", "--methods", "drol", "--parts", "speed", "--against", "their_code:make_update"]) == 0
    assert measured["speed"][-1] is against
    assert "drol 95.24 ms an update, theirs 200.00 ms; ours over theirs: 0.50" in capsys.readouterr().out


def test_without_a_simulator_the_rest_is_measured(measured, capsys, monkeypatch):
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "--methods", "bc"]) == 0
    assert "no evaluations: they need pip install 'drol[ogbench]'" in capsys.readouterr().err
    assert "evaluation" not in measured
    assert main(["bench", "--task", "cube-single-play-singletask-task1-v0"]) == 2
    assert "evaluations need a simulator" in capsys.readouterr().err
    assert main(["bench", "--figure", "a.png"]) == 2
    assert "figures need matplotlib; install it with: pip install 'drol[report]'" in capsys.readouterr().err


MISTAKES = {
    "a method": (["--methods", "dro"], "unknown algorithm 'dro'; did you mean drol?"),
    "a task": (["--task", "cube-singel"], "unknown task 'cube-singel'"),
    "no rounds": (["--rounds", "0"], "rounds is 0; it must be at least 1"),
    "no seeds": (["--seeds", "0"], "seeds is 0; it must be at least 1"),
    "a part": (["--parts", "sped"], "--parts: invalid choice: 'sped'"),
    "a kind of figure": (["--figure", "a.gif"], "the figure is a.gif; its name must end in .png, .svg or .pdf"),
    "no folder": (["--json", "no/such/a.json"], "cannot write no/such/a.json: there is no folder"),
    "a figure of nothing": (["--figure", "a.png", "--parts", "start"], "--figure shows the part speed"),
    "against nothing": (["--against", "a:b", "--parts", "start"], "--against is timed in the part speed"),
    "no function": (["--against", "json"], "--against is 'json'; it must be module:function"),
    "not in the module": (["--against", "json:absent"], "module 'json' has no attribute 'absent'"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_before_anything_is_measured(arguments, message, measured, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert measured == {}
    assert list(tmp_path.iterdir()) == []


def test_progress_says_what_is_measured_and_how_long_it_takes(capsys, monkeypatch):
    now = iter([0.0, 5.0, 10.0, 11.0, 20.0])
    monkeypatch.setattr(bench.time, "monotonic", lambda: next(now))
    say = bench.progress("updates")
    say("compiling drol", 0, 4)
    say("round 1, drol", 1, 4)
    say("round 1, bc", 2, 4)  # too soon after the last line
    say("round 2, drol", 3, 4)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "updates: compiling drol",
        "updates: round 1, drol, about 15 s left of this part",
        "updates: round 2, drol, about 5 s left of this part",
    ]
