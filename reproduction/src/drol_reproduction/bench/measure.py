"""Measure the speed and the memory of every method on this machine."""

from collections.abc import Sequence
from typing import Any

from drol.algorithms import known_algorithms
from drol.data.random_dataset import random_dataset
from drol.errors import InputError
from drol.installation import describe_machine
from drol.progress import Report
from drol.tasks import DEFAULT_TASK, find_source
from drol_reproduction.bench.against import load_against
from drol_reproduction.bench.methods import CANDIDATES, Speed, candidate_ladder, make_algorithms
from drol_reproduction.bench.processes import cores_to_measure, measure_evaluation, measure_start

PARTS = ("start", "evaluation", "speed")
EVALUATION_ROUNDS = 3  # at most, because each takes seconds


def bench(
    methods: Sequence[str] | None = None,
    parts: Sequence[str] = PARTS,
    rounds: int = 5,
    seeds: int = 8,
    preset: str = "paper",
    candidates: Sequence[int] = CANDIDATES,
    task: str = DEFAULT_TASK,
    episodes: int | None = None,
    against: str | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Measure the speed and the memory of methods on this machine.

    Args:
        methods: Names of algorithms; all if None.
        parts: Any of "start" (memory, time to the first update), "evaluation" (steps in environments) and "speed"
            (updates and actions).
        rounds: The number of repetitions; each round times everything once, so that ratios are fair.
        seeds: The number of seeds trained at once, in addition to a single seed.
        preset: Size of the networks: "paper" or "laptop".
        candidates: Values of K for timing the updates of DROL.
        task: The task of the evaluations; its data is not needed.
        episodes: Episodes of one evaluation; if None, at most 50, fewer for a slow method.
        against: Other code as "module:function"; `drol bench --help` explains the function.
        report: Called as `report(done, total, what)` before each measurement.

    Returns:
        All measurements as JSON values: of the machine, and under "methods" a dictionary for each method.

    Example:
        >>> from drol_reproduction.bench.measure import bench
        >>> found = bench(["drol", "fql"], parts=["speed"], rounds=2)  # doctest: +SKIP
        >>> found["methods"]["fql"]["over_drol"]  # doctest: +SKIP
        1.02
    """
    for name, value in (("rounds", rounds), ("seeds", seeds), ("episodes", episodes)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    if against and "speed" not in parts:
        raise InputError("--against is timed in the part speed; add it to --parts")
    find_source(task)
    algorithms = make_algorithms(list(dict.fromkeys(methods or known_algorithms())), preset)
    ladder = candidate_ladder(algorithms, candidates)
    compared = load_against(against) if against else None
    speed = Speed(algorithms, ladder, random_dataset(), seeds, compared) if "speed" in parts else None

    evaluation_rounds, cores = min(rounds, EVALUATION_ROUNDS), cores_to_measure()
    total = 2 * len(algorithms) if "start" in parts else 0
    total += (1 + evaluation_rounds) * len(algorithms) * len(cores) if "evaluation" in parts else 0
    total += (1 + rounds) * len(speed.timers) if speed else 0
    done = 0

    def say(what: str) -> None:
        nonlocal done
        if report:
            report(done, total, what)
        done += 1

    rows: dict[str, dict[str, Any]] = {name: {} for name in algorithms}
    results = {**describe_machine(), "preset": preset, "rounds": rounds, "seeds": seeds, "ladder": {}}
    if "start" in parts:
        found = measure_start(algorithms, say=say)
        rows = {name: rows[name] | found[name] for name in rows}
    if "evaluation" in parts:
        results["task"] = task
        found = measure_evaluation(algorithms, task, evaluation_rounds, episodes, cores, say)
        rows = {name: rows[name] | found[name] for name in rows}
    if speed:
        measured = speed.measure(rounds, say)
        found = measured.pop("methods")
        rows = {name: rows[name] | found[name] for name in rows}
        results |= measured
    if report:
        report(total, total, "done")
    return results | {"methods": rows}
