import json

import pytest

from drol.data.random_dataset import random_dataset
from drol.errors import InputError
from drol_reproduction.bench import measure as benching
from drol_reproduction.bench import processes, timers
from drol_reproduction.bench.fresh_process import evaluate
from drol_reproduction.bench.measure import bench


class FakeChild:
    """Answers at once."""

    def __init__(self, cores=None):
        pass

    def ask(self, what, function, *arguments):
        if function is evaluate:
            return {"steps": 100, "seconds": 0.5}
        return {"seconds_to_first_update": 3.0, "peak_memory_bytes": 10**9, "peak_device_memory_bytes": None}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_every_part_adds_to_the_row_of_a_method_and_each_measurement_is_reported_once(monkeypatch):
    monkeypatch.setattr(processes, "Child", FakeChild)
    monkeypatch.setattr(timers, "TIMED_SECONDS", 1e-6)
    monkeypatch.setattr(timers, "CALLS", 4)
    monkeypatch.setattr(timers, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(benching, "random_dataset", lambda: random_dataset(rows=1001))
    monkeypatch.setattr(benching, "cores_to_measure", lambda: [[0], [0, 1]])
    reported = []
    found = bench(["bc", "bc"], rounds=1, seeds=2, preset="laptop", report=lambda *words: reported.append(words))
    row = found["methods"]["bc"]
    assert (row["compile_seconds"], row["peak_memory_bytes"]) == (3.0, 10**9)
    assert row["evaluation_steps_per_second"] == {"1": 200.0, "2": 200.0}
    assert row["updates_per_second"] > 0
    assert (found["preset"], found["rounds"], found["seeds"], found["task"]) == ("laptop", 1, 2, benching.DEFAULT_TASK)
    totals = {total for _, total, _ in reported}
    assert [done for done, _, _ in reported] == list(range(totals.pop() + 1))
    assert not totals
    assert reported[0][2] == "start with an empty cache, bc"
    json.dumps(found)


WRONG = {
    "rounds": ({"rounds": 0}, "rounds is 0; it must be at least 1"),
    "seeds": ({"seeds": -1}, "seeds is -1; it must be at least 1"),
    "episodes": ({"episodes": 0}, "episodes is 0; it must be at least 1"),
    "method": ({"methods": ["dro"]}, "unknown algorithm 'dro'; did you mean drol?"),
    "task": ({"task": "cube-singel"}, "unknown task 'cube-singel'"),
    "against": ({"against": "a:b", "parts": ["start"]}, "--against is timed in the part speed"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_refused_before_anything_is_measured(arguments, message):
    reported = []
    with pytest.raises(InputError) as caught:
        bench(**arguments, report=lambda *words: reported.append(words))
    assert message in str(caught.value)
    assert not reported
