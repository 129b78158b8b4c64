"""Results of no run, for the tests of what is done with them."""

import json

from drol.results.result import Result, settings_id

VERSIONS = "drol 0.1.0, jax 0.10.1, gymnasium 1.2.0, mujoco 3.9.1, ogbench 1.2.2"


def made_result(outcomes: str | None = None, settings: dict | None = None, **changes) -> Result:
    """An evaluation with these successes, or with those of a score, and settings that differ from the defaults."""
    if outcomes is None:
        successes = round(changes.get("score", 0) / 2)
        outcomes = "1" * successes + "0" * (50 - successes) if "score" in changes else "1101"
    text = json.dumps(settings or {}, sort_keys=True)
    values = {
        "task": "maze", "method": "drol", "settings": text, "settings_id": settings_id(text), "seed": 0, "step": 10,
        "steps": 10, "evaluation": "training", "best_of": 1, "first_episode_seed": 0, "episodes": len(outcomes),
        "outcomes": outcomes, "score": 100 * outcomes.count("1") / len(outcomes), "score_name": "success (%)",
        "mean_return": -3.5, "mean_length": 4.0, "success_timing": "before", "dataset_fingerprint": "ab" * 32,
        "versions": VERSIONS, "run": "runs/one",
    }  # fmt: skip
    return Result(**(values | changes))


def made_group(method: str, successes: list[int], episodes: int = 50, **changes) -> list[Result]:
    """Return an evaluation of each seed with the given numbers of successes, spread over the episodes."""

    def outcome(number: int, count: int) -> str:
        return str((number + 1) * count // episodes - number * count // episodes)

    return [
        made_result("".join(outcome(each, count) for each in range(episodes)), method=method, seed=seed, **changes)
        for seed, count in enumerate(successes)
    ]
