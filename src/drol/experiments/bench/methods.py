"""The table of `drol bench`: which methods are timed, and what the seconds of the rounds say about each."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drol.algorithms import ALGORITHMS, Algorithm, find_algorithm
from drol.data.dataset import Dataset
from drol.experiments.bench.timers import (
    BATCHES,
    CALLS,
    PRODUCT_OPERATIONS,
    Against,
    Say,
    Timer,
    against_timer,
    batch_timer,
    latency_timer,
    make_policy,
    matmul_timer,
    median_ratio,
    numpy_forward,
    single_actions,
    time_in_turn,
    update_operations,
    update_timer,
)

CANDIDATES = (1, 4, 8, 16)  # values of K in the paper's figure of run times
SINGLE, NUMPY = "one action", "numpy forward"
UPDATE_COLUMNS = ("update_milliseconds", "updates_per_second", "gflop", "share_of_bound")


def make_algorithms(names: Sequence[str], preset: str) -> dict[str, Algorithm]:
    """The methods with the paper's networks, or with the small ones of the laptop preset."""
    return {name: find_algorithm(name).from_dict(find_algorithm(name).presets.get(preset, {})) for name in names}


def candidate_ladder(algorithms: Mapping[str, Algorithm]) -> dict[str, Algorithm]:
    """DROL with those K of the paper's figure that it does not have anyway, where it is measured at all."""
    if "drol" not in algorithms:
        return {}
    values = algorithms["drol"].to_dict()
    counts = [count for count in CANDIDATES if count != values["num_candidates"]]
    return {f"drol K={count}": ALGORITHMS["drol"].from_dict(values | {"num_candidates": count}) for count in counts}


def measure_speed(
    algorithms: Mapping[str, Algorithm],
    ladder: Mapping[str, Algorithm],
    dataset: Dataset,
    rounds: int,
    seeds: int,
    against: Against | None = None,
    say: Say | None = None,
) -> dict[str, Any]:
    """Updates, actions and latencies of every method; of the ladder only updates."""
    observation_size, action_size = dataset.spec.observation_size, dataset.spec.action_size
    calls: dict[str, list[float]] = {name: [] for name in (*algorithms, NUMPY)}
    timers: dict[str, Timer] = {}
    product = matmul_timer()
    if against:
        timers["against"] = against_timer(against)
    for name, algorithm in algorithms.items():
        timers[f"{name}: update"] = update_timer(algorithm, dataset)
        timers[f"{name}: matrix product"] = product
        if seeds > 1:
            timers[f"{name}: update of {seeds} seeds"] = update_timer(algorithm, dataset, seeds, keep_states=False)
    for name, algorithm in ladder.items():
        timers[f"{name}: update"] = update_timer(algorithm, dataset)
    hidden_sizes = next(iter(algorithms.values())).to_dict()["hidden_sizes"]
    forward = numpy_forward(hidden_sizes, observation_size + action_size, action_size)
    timers[NUMPY] = latency_timer(forward, calls[NUMPY])
    for name, algorithm in algorithms.items():
        policy = make_policy(algorithm, dataset.spec)
        timers[f"{name}: {SINGLE}"] = latency_timer(single_actions(policy, observation_size), calls[name])
        for rows in BATCHES[1:]:
            timers[f"{name}: {rows} actions"] = batch_timer(policy, observation_size, rows)
    seconds = time_in_turn(timers, rounds, say)

    products = [seconds[f"{name}: matrix product"] for name in algorithms]
    rates = [PRODUCT_OPERATIONS / statistics.mean(each) for each in zip(*products, strict=True)]  # of each round
    bare = float(np.percentile(calls[NUMPY][CALLS:], 50))
    rows = {}
    for name, algorithm in algorithms.items():
        several = seconds.get(f"{name}: update of {seeds} seeds", seconds[f"{name}: update"])
        operations = update_operations(algorithm, dataset)
        each_call = calls[name][CALLS:]  # without the round that compiled
        rows[name] = {
            **update_row(seconds[f"{name}: update"], operations, rates),
            "seeds_updates_per_second": seeds / statistics.median(several),
            "seeds_share_of_bound": share_of_bound(several, seeds * operations, rates),
            "actions_per_second": {
                str(count): count
                / statistics.median(seconds[f"{name}: {SINGLE if count == 1 else f'{count} actions'}"])
                for count in BATCHES
            },
            "action_milliseconds": [1e3 * value for value in seconds[f"{name}: {SINGLE}"]],
            "latency_p50_milliseconds": 1e3 * float(np.percentile(each_call, 50)),
            "latency_p99_milliseconds": 1e3 * float(np.percentile(each_call, 99)),
            "latency_over_numpy": float(np.percentile(each_call, 50)) / bare,
        }
    answer: dict[str, Any] = {
        "matmul_gflops": statistics.median(rates) / 1e9,
        "numpy_forward_p50_milliseconds": 1e3 * bare,
        "methods": rows,
        "ladder": {
            name: update_row(seconds[f"{name}: update"], update_operations(algorithm, dataset), rates)
            for name, algorithm in ladder.items()
        },
    }
    if ladder:
        own = algorithms["drol"].to_dict()["num_candidates"]
        answer["ladder"][f"drol K={own}"] = {name: rows["drol"][name] for name in UPDATE_COLUMNS}
    if against:
        answer["against"] = {
            "place": against.place,
            "name": against.name,
            "milliseconds": 1e3 * statistics.median(seconds["against"]),
            "ratio": {name: median_ratio(seconds[f"{name}: update"], seconds["against"]) for name in algorithms},
        }
    return answer


def update_row(seconds: Sequence[float], operations: int, rates: Sequence[float]) -> dict[str, Any]:
    milliseconds, rate = [1e3 * value for value in seconds], 1 / statistics.median(seconds)
    values = (milliseconds, rate, operations / 1e9, share_of_bound(seconds, operations, rates))
    return dict(zip(UPDATE_COLUMNS, values, strict=True))


def share_of_bound(seconds: Sequence[float], operations: int, rates: Sequence[float]) -> float:
    """The time that the matrix products alone would take at the machine's rate, over the time that was taken."""
    return statistics.median(operations / rate / value for rate, value in zip(rates, seconds, strict=True))
