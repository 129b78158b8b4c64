"""Merge the results of several files, runs and machines, and find incompatible ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from drol.errors import InputError
from drol.results.collect import collect_results, read_all
from drol.results.result import Result, Results

SHOWN = 8  # characters of a fingerprint that are shown


def merge_results(paths: Iterable[Path | str], keep_apart: bool = False) -> list[Results]:
    """Merge results without duplicates.

    Args:
        paths: Files of results, runs, or folders with runs.
        keep_apart: Whether to split results of one task with different data, timing of success or versions of the
            simulator; otherwise they are an error. The first part has the largest compatible set of results of each
            task, the second part the next largest, and so on.

    Returns:
        The parts: more than one only with `keep_apart`. Different scores of the same policy raise `InputError`.
        `skipped` of the first part lists unreadable rows and runs.
    """
    collected = collect_results(paths)
    results = distinct(collected)
    differing = differences_in_circumstances(results)
    if differing and not keep_apart:
        advice = "--keep-apart writes a separate file for each set"
        raise InputError(f"incompatible results: {differing[0]}{more(differing)}; {advice}")
    parts = [Results(rows) for rows in parts_of(results)] or [Results()]
    for part in parts:
        check_no_contradiction(part)
    parts[0].skipped = collected.skipped
    return parts


def check_results(paths: Iterable[Path | str]) -> list[str]:
    """Return a line for each fault in results.

    Faults are invalid rows, different scores of the same policy, results of one task with different data, timing of
    success or versions of the simulator, seeds that only some groups of a task have, and seeds that stopped early.

    Args:
        paths: Files of results, runs, or folders with runs.
    """
    collected = read_all(paths)
    results = distinct(collected)
    found = [*collected.skipped, *differences_in_circumstances(results)]
    for part in parts_of(results):
        found += contradictions(part)
    return found + missing_seeds(results)


def distinct(results: Iterable[Result]) -> list[Result]:
    """Remove duplicate results, independent of the names of their runs.

    Of two evaluations of one policy that agree, keep the one with more episodes; with equally many episodes, keep
    that of the longer run.
    """
    kept: list[Result] = []
    places: dict[tuple[Any, ...], list[int]] = {}
    for result in results:
        own = places.setdefault((*result.identity, circumstances(result)), [])
        place = next((each for each in own if agree(kept[each], result)), None)
        if place is None:
            own.append(len(kept))
            kept.append(result)
        elif (result.episodes, result.steps) > (kept[place].episodes, kept[place].steps):
            kept[place] = result
    return kept


def agree(one: Result, other: Result) -> bool:
    """Return whether two evaluations of one policy are consistent: their common episodes have the same outcomes."""
    if (one.first_episode_seed, one.episodes) == (other.first_episode_seed, other.episodes):
        return (one.score, one.outcomes) == (other.score, other.outcomes)
    shift = other.first_episode_seed - one.first_episode_seed
    first, second = (one.outcomes[shift:], other.outcomes) if shift >= 0 else (one.outcomes, other.outcomes[-shift:])
    return all(mine == theirs for mine, theirs in zip(first, second, strict=False))


def consistent(results: Iterable[Result]) -> list[Result]:
    """Remove duplicates; raise `InputError` for different scores of the same policy."""
    found = distinct(results)
    check_no_contradiction(found)
    return found


def parts_of(results: Sequence[Result]) -> list[list[Result]]:
    """Split results so that within a part each task has one dataset, timing of success and simulator."""
    counts = Counter((result.task, circumstances(result)) for result in results)
    ranks: dict[Any, int] = {}
    for task in dict.fromkeys(result.task for result in results):
        own = [each for each, _ in counts.most_common() if each[0] == task]
        ranks |= {each: rank for rank, each in enumerate(own)}
    parts: list[list[Result]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for result in results:
        parts[ranks[result.task, circumstances(result)]].append(result)
    return parts


def circumstances(result: Result) -> tuple[str, ...]:
    return tuple(result.circumstances.values())


def differences_in_circumstances(results: Iterable[Result]) -> list[str]:
    """Return a line for each task and circumstance with several values, naming a run of each."""
    found: dict[tuple[str, str], dict[str, str]] = {}  # (task, circumstance) -> value -> a run with it
    for result in results:
        for name, value in result.circumstances.items():
            found.setdefault((result.task, name), {}).setdefault(value, result.run)
    lines = []
    for (task, name), runs in found.items():
        if len(runs) > 1:
            length = SHOWN if name == "dataset_fingerprint" else None
            words = " and ".join(f"{value[:length] or 'unknown'} in {run}" for value, run in runs.items())
            lines.append(f"on {task}, {name} is {words}")
    return lines


def contradictions(results: Iterable[Result]) -> list[str]:
    """Return a line for each result that disagrees with an earlier one of the same policy."""
    first: dict[tuple[Any, ...], Result] = {}
    lines = []
    for result in results:
        before = first.setdefault(result.identity, result)
        if not agree(before, result):
            which = f"{result.method} {result.settings_id} on {result.task}, seed {result.seed}, step {result.step:,}"
            scores = f"{before.score:g} in {before.run} and {result.score:g} in {result.run}"
            lines.append(f"{which}, best of {result.best_of} ({result.evaluation}) scores {scores}")
    return lines


def check_no_contradiction(results: Iterable[Result]) -> None:
    """Raise `InputError` for different scores of the same policy."""
    lines = contradictions(results)
    if lines:
        raise InputError(f"different scores of the same policy: {lines[0]}{more(lines)}; remove one of the two")


def missing_seeds(results: Iterable[Result]) -> list[str]:
    """Return a line for each group without some seeds of its task, and for each seed that stopped early."""
    last: dict[tuple[Any, ...], dict[int, Result]] = {}  # group -> seed -> its last evaluation during training
    for result in results:
        if result.evaluation == "training":
            own = last.setdefault(result.group, {})
            if result.seed not in own or result.step > own[result.seed].step:
                own[result.seed] = result
    lines = []
    for group, seeds in last.items():
        task, method, settings, _ = group
        others = {seed for other, rows in last.items() if other[0] == task for seed in rows}
        lacking = sorted(others - seeds.keys())
        if lacking:
            lines.append(f"{method} {settings} on {task} lacks {seed_words(lacking)} of other groups")
        for seed, result in sorted(seeds.items()):
            if result.step < result.steps:
                reached = f"{result.step:,} of {result.steps:,} updates"
                lines.append(f"{method} {settings} on {task}: seed {seed} was last evaluated after {reached}")
    return lines


def seed_words(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def more(lines: Sequence[str]) -> str:
    """Return the number of further lines, in words."""
    return f" (and {len(lines) - 1} more; `drol results check` lists all)" if len(lines) > 1 else ""
