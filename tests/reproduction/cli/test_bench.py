"""`drol bench`: options, printed and written results. Other files test the measurements."""

import json
import re

import pytest

from drol.cli.main import main
from drol_reproduction.bench import measure as benching
from drol_reproduction.bench.methods import CANDIDATES
from drol_reproduction.cli import bench as command

SPEED = {
    "update_milliseconds": [100.0, 90.0],
    "updates_per_second": 10.5,
    "gflop": 13.1,
    "share_of_bound": 0.7,
    "over_drol": 1.25,
    "seeds_updates_per_second": 1312.0,
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
RESULTS = {
    "device": "CPU with 4 cores", "platform": "cpu", "cores": 4, "jax": "0.10.2", "preset": "paper", "rounds": 2,
    "seeds": 8, "task": "a-maze", "matmul_gflops": 201.0, "numpy_forward_p50_milliseconds": 0.15,
    "ladder": {"drol K=1": SPEED, "drol K=64": SPEED},
    "against": {"place": "a:b", "name": "theirs", "milliseconds": 200.0, "ratio": {"drol": 0.5}},
    "methods": {"drol": SPEED | START | EVALUATION, "bc": SPEED | START | EVALUATION},
}  # fmt: skip


def test_the_table_has_a_row_for_each_method_and_the_ratios_below():
    lines = command.table(RESULTS).splitlines()
    assert lines[0] == "CPU with 4 cores, jax 0.10.2, paper networks, 2 rounds"
    cells = "10.5 1.25 1,312.0 70% 5,000 61,000 412,345 0.19 0.31 1,000 1,850 3,400 0.92 12.3 1.2"
    assert " ".join(lines[4].split()) == f"drol {cells}"
    assert " ".join(lines[5].split()) == f"bc {cells}"
    assert len({line.rindex("1.2") for line in lines[4:6]}) == 1  # columns are aligned
    assert lines[2].split()[:4] == ["updates", "time", "8", "seeds"]
    assert "4 cores" in lines[3]
    rest = "\n".join(lines[6:])
    assert "evaluation in a-maze; speed on two cores over one: drol 1.85, bc 1.85" in rest
    assert (
        "the bare network in NumPy takes 0.15 ms (p50); an action takes this many times as long: drol 1.27, bc 1.27"
        in rest
    )
    assert "time of an update (and divided by that of drol): drol K=1 95.2 ms (1.25), drol K=64 95.2 ms (1.25)" in rest
    assert "drol 95.24 ms per update, theirs 200.00 ms; ours over theirs: 0.50" in rest


def test_columns_that_were_not_measured_are_left_out():
    machine = {name: RESULTS[name] for name in ("device", "jax", "preset", "rounds", "seeds", "cores")}
    printed = command.table(machine | {"ladder": {}, "methods": {"fql": START}})
    assert re.sub(" +", " ", printed.splitlines()[4]) == "fql 0.92 12.3 1.2"
    assert "matrix product" not in printed
    alone = command.table(machine | {"cores": 2, "ladder": {}, "methods": {"fql": EVALUATION | START}, "task": "toy"})
    assert alone.splitlines()[3].split().count("cores") == 1  # two cores are all cores


def test_the_numbers_are_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "bench", lambda **_: RESULTS)
    path = tmp_path / "speed.json"
    assert main(["bench", "--json", str(path)]) == 0
    assert json.loads(path.read_text()) == RESULTS
    assert capsys.readouterr().out.endswith(f"wrote {path}\n")


def options(*arguments):
    return command.read_arguments(list(arguments))[0]


def test_quick_measures_less_unless_more_is_asked_for():
    everything = options()
    assert "methods" not in everything  # all of them
    assert (everything["rounds"], everything["candidates"], everything["seeds"]) == (5, CANDIDATES, 8)
    assert tuple(everything["parts"]) == command.PARTS
    quick = options("--quick")
    assert (quick["methods"], quick["rounds"], quick["episodes"]) == (["drol", "fql"], 2, 8)
    assert (quick["candidates"], quick["seeds"], quick["parts"]) == ((), 1, ["speed"])
    flags = ["--methods", "iql", "--rounds", "4", "--episodes", "20", "--seeds", "3", "--parts", "start"]
    more = options("--quick", *flags)
    assert (more["methods"], more["rounds"], more["episodes"]) == (["iql"], 4, 20)
    assert (more["seeds"], more["parts"]) == (3, ["start"])


def test_without_a_simulator_the_rest_is_measured(capsys, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert options("--methods", "bc")["parts"] == ["start", "speed"]
    assert "skipping evaluations: they need pip install 'drol[ogbench]'" in capsys.readouterr().err
    assert main(["bench", "--task", "cube-single-play-singletask-task1-v0"]) == 2
    assert "evaluations need a simulator" in capsys.readouterr().err


MISTAKES = {
    "a method": (["--methods", "dro"], "unknown algorithm 'dro'; did you mean drol?"),
    "a task": (["--task", "cube-singel"], "unknown task 'cube-singel'"),
    "no rounds": (["--rounds", "0"], "rounds is 0; it must be at least 1"),
    "a part": (["--parts", "sped"], "--parts: invalid choice: 'sped'"),
    "no folder": (["--json", "no/such/a.json"], "cannot write no/such/a.json: the folder"),
    "no function": (["--against", "json"], "--against is 'json'; it must be module:function"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_before_anything_is_measured(arguments, message, capsys, tmp_path, monkeypatch):
    def measured(*_, **__):
        raise AssertionError("measured")

    for name in ("measure_start", "measure_evaluation", "Speed"):
        monkeypatch.setattr(benching, name, measured)
    monkeypatch.setattr(command, "keep_compiled_programs", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
