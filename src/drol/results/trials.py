"""Find a good policy with few real trials, by sequential halving.

In each round every remaining policy gets the same number of trials, then the better half remains. Each round has about
the same total number of trials, so the remaining policies get more trials in each round. Reference: "Almost Optimal
Exploration in Multi-Armed Bandits".
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drol.bounds import check_at_least
from drol.errors import InputError, unknown_name
from drol.results.statistical_tests import Interval, newcombe_interval, wilson_interval

PER_CANDIDATE = 3  # least average trials per policy; further policies are not tried
COLUMNS = ("policy", "successes", "trials")
RESULT = re.compile(r"(.+)=(\d+)/(\d+)")


class Round(NamedTuple):
    """One round of a plan."""

    candidates: int  # policies to try
    trials: int  # trials of each policy


class Tally(NamedTuple):
    """The trials of one policy so far."""

    successes: int
    trials: int

    @property
    def rate(self) -> float:
        return self.successes / self.trials if self.trials else 0.0

    @property
    def interval(self) -> Interval:
        """Wilson's 95% interval of the probability of success."""
        return wilson_interval(self.successes, self.trials) if self.trials else Interval(0.0, 1.0)


NONE_YET = Tally(0, 0)


@dataclass(frozen=True)
class Trials:
    """A plan of trials and its progress.

    Attributes:
        rounds: The rounds in order.
        left_out: Policies that are not tried, because the trials are too few.
        tallies: The trials of every policy of the plan so far.
        round: The number of the current round, from 0; the number of rounds when all are done.
        left: The remaining policies, the best so far first.
        due: The missing trials of each policy in the current round; empty when all rounds are done.
    """

    rounds: tuple[Round, ...]
    left_out: tuple[str, ...]
    tallies: Mapping[str, Tally]
    round: int
    left: tuple[str, ...]
    due: Mapping[str, int]

    @property
    def finished(self) -> bool:
        return self.round == len(self.rounds)

    @property
    def best(self) -> str:
        """The best policy by the trials so far."""
        return self.left[0]

    @property
    def verdict(self) -> str:
        """Describe the best policy, and whether it differs significantly from the others."""
        best = self.tallies[self.best]
        low, high = best.interval
        words = (
            f"take {self.best}: {best.successes} of {best.trials} trials succeeded, 95% interval {100 * low:.0f} to "
            f"{100 * high:.0f}%"
        )
        others = [name for name in self.tallies if name != self.best and self.tallies[name].trials]
        unclear = [name for name in others if newcombe_interval(*best, *self.tallies[name]).low <= 0]
        if others and not unclear:
            return f"{words}; it is significantly better than each of the others"
        count = f"{len(unclear)} of the {len(others)} others" if len(others) > 1 else "the other one"
        return f"{words}; with so few trials it does not differ significantly from {count}" if others else words


def make_plan(candidates: int, trials: int) -> tuple[Round, ...]:
    """Return the rounds of sequential halving: 8 policies and 24 trials make 8 x 1, 4 x 2 and 2 x 4.

    Args:
        candidates: The number of policies.
        trials: The total number of trials; a remainder goes to the last round.
    """
    check_at_least("candidates", candidates, 1)
    check_at_least("trials", trials, candidates)
    counts = [candidates]
    while counts[-1] > 2:
        counts.append(math.ceil(counts[-1] / 2))
    rounds, left = [], trials
    for number, count in enumerate(counts):
        each = max(1, left // (len(counts) - number) // count)
        if each * count > left:
            break
        rounds.append(Round(count, each))
        left -= each * count
    last = rounds[-1]
    return (*rounds[:-1], Round(last.candidates, last.trials + left // last.candidates))


def plan_trials(candidates: Sequence[str], trials: int, results: Iterable[tuple[str, Tally]] = ()) -> Trials:
    """Return a plan of trials with the results so far: the policies to try next, or the best policy.

    Args:
        candidates: Names of the policies in the order to try them. The order only decides ties, and which policies are
            not tried if trials are too few.
        trials: The total number of trials.
        results: Results so far, in any order; results of the same policy are added.
    """
    if len(set(candidates)) < len(candidates) or not candidates:
        raise InputError(f"the policies are {', '.join(candidates) or 'none'}; give each policy once")
    check_at_least("trials", trials, PER_CANDIDATE)
    count = min(len(candidates), trials // PER_CANDIDATE)
    names = list(candidates[:count])
    tallies = add_up(names, results)
    rounds = make_plan(count, trials)
    left, needed = names, 0
    for number, each in enumerate(rounds):
        left, before = kept(left, tallies, each.candidates, needed), needed
        needed += each.trials
        due = {name: needed - tallies[name].trials for name in left if tallies[name].trials < needed}
        if due:
            ranked = ranking(left, tallies) if before or any(tally.trials for tally in tallies.values()) else left
            return Trials(rounds, tuple(candidates[count:]), tallies, number, tuple(ranked), due)
    return Trials(rounds, tuple(candidates[count:]), tallies, len(rounds), tuple(ranking(left, tallies)), {})


def kept(names: Sequence[str], tallies: Mapping[str, Tally], count: int, needed: int) -> list[str]:
    """Return the policies that remain for a round; a policy with trials in that round already remained earlier."""
    return sorted(ranking(names, tallies), key=lambda name: tallies[name].trials <= needed)[:count]


def ranking(names: Sequence[str], tallies: Mapping[str, Tally]) -> list[str]:
    """Sort policies by success rate, best first; ties keep their order."""
    return sorted(names, key=lambda name: -tallies[name].rate)


def add_up(names: Sequence[str], results: Iterable[tuple[str, Tally]]) -> dict[str, Tally]:
    """Return the sum of the results of each policy; raise `InputError` for an unknown policy."""
    tallies = dict.fromkeys(names, NONE_YET)
    for name, tally in results:
        if name not in tallies:
            raise unknown_name("policy of the trials", name, names)
        if not 0 <= tally.successes <= tally.trials:
            raise InputError(
                f"{name}: {tally.successes} of {tally.trials} trials; successes must be from 0 to the number of trials"
            )
        before = tallies[name]
        tallies[name] = Tally(before.successes + tally.successes, before.trials + tally.trials)
    return tallies


def read_result(text: str) -> tuple[str, Tally]:
    """Parse a result such as `runs/a=1/3`: one success in three trials."""
    found = RESULT.fullmatch(text)
    if not found:
        raise InputError(f"the result is {text!r}; expected POLICY=SUCCESSES/TRIALS, such as runs/a=1/3")
    return found[1], Tally(int(found[2]), int(found[3]))


def read_results_file(path: Path) -> list[tuple[str, Tally]]:
    """Return the results of a CSV file with the columns policy, successes and trials."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(f"{path}: no column {missing[0]!r}; the columns must be {', '.join(COLUMNS)}")
            return [read_line(path, reader.line_num, row) for row in reader]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a CSV file in UTF-8 ({error.reason})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def read_line(path: Path, line: int, row: Mapping[str, str | None]) -> tuple[str, Tally]:
    try:
        return str(row["policy"]), Tally(int(row["successes"] or ""), int(row["trials"] or ""))
    except ValueError:
        raise InputError(f"{path}: line {line}: successes and trials must be whole numbers") from None


def append_result(path: Path, name: str, tally: Tally) -> None:
    """Append a result to a CSV file; create the file if it does not exist."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow((name, *tally))
