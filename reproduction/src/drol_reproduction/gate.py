"""Gates: check that our baselines learn as fast as public runs before methods are compared with them.

The first gate compares FQL on cube-single-task2 with six public runs at the paper's settings. The second requires a
minimum score of IQL with networks of three layers of 256. A comparison with a baseline that fails its gate says little.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from drol.results.merge import consistent
from drol.results.result import Result
from drol.results.statistical_tests import Interval, welch_interval
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.protocol import protocol_differences
from drol_reproduction.published.curves import public_curves

COMMAND = "drol paper gate"
CUBE = "cube-single-play-singletask-task2-v0"
PUBLIC = "fql"  # the source of the public runs: alpha 217, 294 and 400, two seeds each
UPDATES = (20_000, 40_000)
WITHIN = 15.0  # largest allowed difference, in points, of our mean below the public mean
LEAST_SEEDS = 3  # minimum number of our seeds for a test
IQL_UPDATES, IQL_LEAST = 100_000, 60.0
IQL_ALLOWED = {"networks 3x256"}  # allowed differences of the second gate's runs from the paper
FEW, ON, BELOW, ABOVE = "too few seeds", "on the curve", "below", "above"


@dataclass(frozen=True)
class Gate:
    """The outcome of one gate.

    Attributes:
        name: The method and the number of updates.
        ours: The score of each seed.
        wanted: The public scores, or the minimum score.
        interval: Interval of our mean minus theirs (Welch, 95%); None if there are too few seeds or no public runs.
        verdict: "on the curve", "reached", "below", "above" or "too few seeds".
        left_out: The differences from the paper of the runs that were not counted.
    """

    name: str
    ours: tuple[float, ...]
    wanted: tuple[float, ...]
    interval: Interval | None
    verdict: str
    left_out: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict in (ON, "reached")


def gates(results: Iterable[Result]) -> list[Gate]:
    """Return the outcome of every gate for some results."""
    results = consistent(results)
    return [*(fql_gate(results, updates) for updates in UPDATES), iql_gate(results)]


def fql_gate(results: Sequence[Result], updates: int) -> Gate:
    """Compare FQL with the public runs at a step; only runs with the paper's settings count."""
    ours, left_out = scores_after(results, "fql", updates, set())
    points = next(points for source, points in public_curves(CUBE).items() if source.name == PUBLIC)
    theirs = tuple(point.score for point in points if point.updates == updates)
    interval = welch_interval(ours, theirs) if len(ours) >= LEAST_SEEDS else None
    return Gate(f"fql after {updates:,}", ours, theirs, interval, verdict_of(ours, theirs, interval), left_out)


def verdict_of(ours: Sequence[float], theirs: Sequence[float], interval: Interval | None) -> str:
    """Return the verdict on whether our runs lie on a public curve."""
    if interval is None:
        return FEW
    difference = float(np.mean(ours) - np.mean(theirs))
    if interval.low <= 0 <= interval.high and difference >= -WITHIN:
        return ON
    return BELOW if difference < 0 else ABOVE


def iql_gate(results: Sequence[Result]) -> Gate:
    """Compare IQL with a minimum score; only runs with the paper's settings, apart from the network size, count."""
    ours, left_out = scores_after(results, "iql", IQL_UPDATES, IQL_ALLOWED)
    verdict = FEW if not ours else "reached" if np.mean(ours) >= IQL_LEAST else BELOW
    return Gate(f"iql after {IQL_UPDATES:,}", ours, (IQL_LEAST,), None, verdict, left_out)


def scores_after(
    results: Sequence[Result], method: str, updates: int, allowed: set[str]
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return the score of each seed on the cube, and how the runs that are not counted differ from the paper."""
    scores: dict[int, float] = {}
    left_out = []
    for row in results:
        if (row.task, row.method, row.step, row.evaluation) == (CUBE, method, updates, "training"):
            found = [each for each in protocol_differences(row) if each not in allowed]
            if found:
                left_out.append(", ".join(found))
            else:
                scores[row.seed] = row.score
    return tuple(score for _, score in sorted(scores.items())), tuple(dict.fromkeys(left_out))


def gate_table(found: Iterable[Gate]) -> str:
    """Return the gates as a Markdown table."""
    rows = []
    for gate in found:
        difference = f"{np.mean(gate.ours) - np.mean(gate.wanted):+.0f}" if gate.ours else "-"
        ends = f"{gate.interval.low:+.0f} to {gate.interval.high:+.0f}" if gate.interval else "-"
        mean = f"{np.mean(gate.wanted):.0f}"
        wanted = f"{mean} ({len(gate.wanted)})" if len(gate.wanted) > 1 else f">= {mean}"
        ours = f"{np.mean(gate.ours):.0f} ({len(gate.ours)})" if gate.ours else "- (0)"
        words = f"; not counted, trained otherwise: {'; '.join(gate.left_out)}" if gate.left_out else ""
        rows.append((gate.name, ours, wanted, difference, ends, gate.verdict + words))
    head = ("cube-single-task2", "ours (seeds)", "wanted (runs)", "difference", "95% interval", "verdict")
    return markdown(head, rows)
