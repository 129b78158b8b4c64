"""The part `speed` of a bench: updates, actions and latencies of every method."""

import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from drol.algorithms import Algorithm, find_algorithm
from drol.data.dataset import Dataset
from drol.networks.actors import LatentActor
from drol_reproduction.bench import timers as timing
from drol_reproduction.bench.against import Against, against_timer
from drol_reproduction.bench.operations import update_operations
from drol_reproduction.bench.timers import Say, Timer, median_ratio

CANDIDATES = (1, 4, 8, 16, 64)  # values of K for timing DROL
BATCHES = (64, 1024)  # observations in one call of a policy
NUMPY = "the network in NumPy"


def make_algorithms(names: Sequence[str], preset: str) -> dict[str, Algorithm]:
    """Return the methods with the paper's networks or the small networks of the laptop preset."""
    return {name: find_algorithm(name).from_dict(find_algorithm(name).presets.get(preset, {})) for name in names}


def candidate_ladder(algorithms: Mapping[str, Algorithm], counts: Sequence[int]) -> dict[str, Algorithm]:
    """Return DROL with each given K except the default; empty if DROL is not measured."""
    if "drol" not in algorithms:
        return {}
    values = algorithms["drol"].to_dict()
    others = [count for count in counts if count != values["num_candidates"]]
    return {f"drol K={count}": find_algorithm("drol")(**(values | {"num_candidates": count})) for count in others}


class Speed:
    """Timers of all methods, and timers of updates for the other values of K."""

    def __init__(
        self,
        algorithms: Mapping[str, Algorithm],
        ladder: Mapping[str, Algorithm],
        dataset: Dataset,
        seeds: int,
        against: Against | None = None,
    ):
        self.algorithms, self.ladder, self.dataset = algorithms, ladder, dataset
        self.seeds, self.against = seeds, against
        self.calls: dict[str, list[float]] = {name: [] for name in (*algorithms, NUMPY)}  # seconds of each action
        self.timers: dict[str, Timer] = {}
        product, spec = timing.matmul_timer(), dataset.spec
        observation = np.zeros(spec.observation_shape, np.float32)
        if against:
            self.timers["against"] = against_timer(against)
        for name, algorithm in algorithms.items():
            self.timers[f"{name}: update"] = timing.update_timer(algorithm, dataset)
            self.timers[f"{name}: matrix product"] = product
            if seeds > 1:
                several = timing.update_timer(algorithm, dataset, seeds, keep_states=False)
                self.timers[f"{name}: update of {seeds} seeds"] = several
        for name, algorithm in ladder.items():
            self.timers[f"{name}: update"] = timing.update_timer(algorithm, dataset)
        hidden_sizes = next(iter(algorithms.values())).to_dict()["hidden_sizes"]
        bare = timing.numpy_network(LatentActor(jax.random.key(0), spec, hidden_sizes).network)
        whole = np.zeros(spec.observation_size + spec.action_size, np.float32)  # an observation and a latent
        self.timers[NUMPY] = timing.latency_timer(lambda: bare(whole), self.calls[NUMPY])
        # Created at their first timing, because creating a controller compiles it.
        policy = functools.cache(lambda name: timing.make_policy(algorithms[name], spec))
        control = functools.cache(lambda name: policy(name).for_control(seed=0))
        for name in algorithms:
            one = timing.latency_timer(lambda name=name: control(name)(observation), self.calls[name])
            self.timers[f"{name}: one action"] = one
            for count in BATCHES:
                batch = np.tile(observation, (count, 1))
                several = timing.call_timer(lambda name=name, batch=batch: policy(name).act(batch))
                self.timers[f"{name}: {count} actions"] = several

    def measure(self, rounds: int, say: Say = lambda _: None) -> dict[str, Any]:
        """Return a row for each method and each K, the rate of the matrix product, and the ratios to other code."""
        seconds = timing.time_in_turn(self.timers, rounds, say)
        products = [seconds[f"{name}: matrix product"] for name in self.algorithms]
        rates = [timing.PRODUCT_OPERATIONS / statistics.mean(each) for each in zip(*products, strict=True)]
        bare = self.latency(NUMPY, 50)
        rows = {name: self.method_row(name, seconds, rates, bare) for name in self.algorithms}
        ladder = {name: self.update_row(name, algorithm, seconds, rates) for name, algorithm in self.ladder.items()}
        if "drol" in self.algorithms:
            own = self.algorithms["drol"].to_dict()["num_candidates"]
            ladder[f"drol K={own}"] = self.update_row("drol", self.algorithms["drol"], seconds, rates)
        answer = {
            "matmul_gflops": statistics.median(rates) / 1e9,
            "numpy_forward_p50_milliseconds": bare,
            "methods": rows,
            "ladder": dict(sorted(ladder.items(), key=lambda row: int(row[0].split("=")[1]))),
        }
        if self.against:
            ratios = {name: median_ratio(seconds[f"{name}: update"], seconds["against"]) for name in self.algorithms}
            answer["against"] = {
                "place": self.against.place,
                "name": self.against.name,
                "milliseconds": 1e3 * statistics.median(seconds["against"]),
                "ratio": ratios,
            }
        return answer

    def update_row(
        self, name: str, algorithm: Algorithm, seconds: Mapping[str, Sequence[float]], rates: Sequence[float]
    ) -> dict[str, Any]:
        """Summarise the rounds for the updates of a method with one seed."""
        each, operations = seconds[f"{name}: update"], update_operations(algorithm, self.dataset)
        return {
            "update_milliseconds": [1e3 * value for value in each],
            "updates_per_second": 1 / statistics.median(each),
            "gflop": operations / 1e9,
            "share_of_bound": share_of_bound(each, operations, rates),
            "over_drol": median_ratio(each, seconds["drol: update"]) if "drol" in self.algorithms else None,
        }

    def method_row(
        self, name: str, seconds: Mapping[str, Sequence[float]], rates: Sequence[float], bare: float
    ) -> dict[str, Any]:
        """Summarise the rounds for a method: updates with one and several seeds, and actions."""
        row = self.update_row(name, self.algorithms[name], seconds, rates)
        several = seconds.get(f"{name}: update of {self.seeds} seeds", seconds[f"{name}: update"])
        single = seconds[f"{name}: one action"]
        actions = {"1": 1 / statistics.median(single)}
        actions |= {str(count): count / statistics.median(seconds[f"{name}: {count} actions"]) for count in BATCHES}
        return row | {
            "seeds_updates_per_second": self.seeds / statistics.median(several),
            "actions_per_second": actions,
            "action_milliseconds": [1e3 * value for value in single],
            "latency_p50_milliseconds": self.latency(name, 50),
            "latency_p99_milliseconds": self.latency(name, 99),
            "latency_over_numpy": self.latency(name, 50) / bare,
        }

    def latency(self, name: str, percentile: float) -> float:
        """Return a percentile of the milliseconds of an action, without the first round, which compiles."""
        return 1e3 * float(np.percentile(self.calls[name][timing.CALLS :], percentile))


def share_of_bound(seconds: Sequence[float], operations: int, rates: Sequence[float]) -> float:
    """Return the time of the matrix products at the machine's rate, divided by the measured time."""
    return statistics.median(operations / rate / value for rate, value in zip(rates, seconds, strict=True))
