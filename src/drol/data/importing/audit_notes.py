"""Notes on a dataset that the user should read before training."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from drol.data.clock import describe_sampling, is_uneven
from drol.data.dimensions import Dimensions
from drol.data.import_options import Counts
from drol.data.importing.column_statistics import Statistics
from drol.data.moments import SMALLEST_DEVIATION
from drol.errors import counted

NOTHING_HELD_OUT = "no episode is held out, so there is nothing to validate on; a larger --validation holds out more"


def notes_on_time(sampling: Mapping[str, Any] | None) -> list[str]:
    """Return a note if the time between steps varies."""
    if sampling is None or not is_uneven(sampling):
        return []
    return [
        f"the steps are not evenly spaced: {describe_sampling(sampling)}; a policy learns as if they were, so sample "
        "the log at a fixed rate, or split it (--split-at-gaps)"
    ]


def find_notes(
    statistics: Statistics,
    counts: Counts,
    named: Mapping[str, Dimensions | None] | None = None,
    nothing_held_out: bool = False,
) -> list[str]:
    """Return notes that the user should read before training."""
    found = []
    of_observation, of_action = ((named or {}).get(what) for what in ("observation", "action"))
    if counts.splits:
        found.append(f"{counted(counts.splits, 'cut')} at gaps in time split episodes")
    observation, action = statistics.observation, statistics.action
    if counts.dropped:
        found.append(
            f"left out because a value was not finite: {counted(counts.dropped, 'step')}; episodes are cut there"
        )
    if counts.gaps:
        found.append(
            f"at {counted(counts.gaps, 'step')} the next observation is not that of the following step; an episode is "
            "cut there"
        )
    if counts.too_short:
        left_out = counted(counts.too_short, "episode")
        found.append(f"left out because of a single step without a next observation: {left_out}")
    if statistics.image_shape is None and observation.constant:
        found.append(f"observation {dimensions(observation.constant, 'never changes', 'never change', of_observation)}")
    if action.constant:
        found.append(f"action {dimensions(action.constant, 'never changes', 'never change', of_action)}")
    share = statistics.at_limit / max(1, statistics.transitions)
    saturated = [number for number in np.flatnonzero(share > 0.05).tolist() if number not in action.constant]
    if saturated:
        worst = max(saturated, key=lambda number: share[number])
        found.append(
            f"action {dimensions(saturated, 'is', 'are', of_action)} often at the limit of the box "
            f"(dimension {worst} in {share[worst]:.0%} of the transitions)"
        )
    width = np.maximum(np.abs(action.low), np.abs(action.high)) if action.count else np.zeros(0)
    narrow = [number for number in np.flatnonzero(width < 0.2).tolist() if number not in action.constant]
    if narrow:
        found.append(
            f"action {dimensions(narrow, 'stays', 'stay', of_action)} within a fifth of the box; it may be too wide"
        )
    if statistics.reward.count and statistics.reward.constant:
        found.append(f"every reward is {statistics.reward.low[0]:g}; there is nothing to tell good from bad")
    if statistics.duplicate_episodes:
        copies = statistics.duplicate_episodes
        found.append(
            f"{counted(copies, 'episode')} {'is a copy of another' if copies == 1 else 'are copies of others'}"
        )
    if statistics.duplicate_share > 0.01:
        found.append(f"{statistics.duplicate_share:.0%} of the transitions are copies of others")
    found += find_notes_on_ends(statistics)
    if statistics.image_shape is None and observation.count:
        too_wide, tiny = observation.too_wide, observation.tiny
        wild = np.flatnonzero((observation.deviation > 30) | (np.abs(observation.mean) > 30)).tolist()
        wild = [number for number in wild if number not in too_wide]
        advice = "give such numbers in another unit" if too_wide else "train with --standardise-observations"
        if wild:
            found.append(f"observation {dimensions(wild, 'is', 'are', of_observation)} large; {advice}")
        if too_wide:
            reach = dimensions(too_wide, "reaches", "reach", of_observation)
            found.append(f"observation {reach} too far for --standardise-observations; give them in another unit")
        if tiny:
            change = dimensions(tiny, "changes", "change", of_observation)
            found.append(
                f"observation {change} by less than {SMALLEST_DEVIATION:g}, which --standardise-observations takes for "
                "constant; give such numbers in another unit"
            )
    if statistics.transitions < 256:
        found.append(f"fewer transitions than a batch ({statistics.transitions:,}); some are drawn twice")
    if nothing_held_out:
        found.append(NOTHING_HELD_OUT)
    return found


def find_notes_on_ends(statistics: Statistics) -> list[str]:
    """Return notes on suspicious ends of episodes."""
    found = []
    lengths = np.concatenate(statistics.lengths or [np.zeros(0, int)])
    ended = np.concatenate(statistics.ended or [np.zeros(0, bool)])
    if ended.sum() > 2 and len(np.unique(lengths[ended])) == 1 and lengths[ended][0] == lengths.max():
        found.append(
            f"all {ended.sum():,} true ends come after exactly {lengths[ended][0]:,} transitions: is it a time limit? "
            "If so, import again with --ends timeout"
        )
    if len(ended) and not ended.any():
        found.append("no episode truly ends; the value beyond every end is bootstrapped")
    return found


def dimensions(numbers: list[int], verb_of_one: str, verb_of_many: str, named: Dimensions | None = None) -> str:
    """Return dimensions by number and name, with the verb that agrees: "dimensions 1 (x), 2 (y) never change"."""
    texts = [f"{number} ({named.names[number]})" if named else str(number) for number in numbers[:8]]
    shown = ", ".join(texts) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
    return f"dimensions {shown} {verb_of_many}" if len(numbers) > 1 else f"dimension {shown} {verb_of_one}"
