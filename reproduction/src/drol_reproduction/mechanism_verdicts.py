"""Summarise the rows of `drol paper mechanism`: tables, and verdicts on M1 to M3 of results/plan_2026-11-18.md.

M1: after 1,000 updates the owner has changed for at least 20 points more of the data actions with DROL(16) than with
    FQL and with DROL without Q. The lowest seed of DROL(16) is compared with the highest seed of each control.
M2: after 100 updates, in every seed of DROL(16), old owners rose in Q more often where the owner changed than where it
    was kept. And the data is nearer to its nearest candidate than if old owners had kept their actions; this second
    half holds by definition wherever an owner changed, so the reason states its size.
M3: the spread of every run of DROL with K of 4 or more is at least 0.3 of the data's spread.

Runs are compared within one task and one size of networks. Verdicts use DROL(16) and FQL with the paper's weight of
cloning; the tables also show runs with other weights.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from drol.presets.scales import like_task
from drol.presets.settings import GROUP_OF_TASK, task_settings
from drol_reproduction.experiments import DEFAULT_K, short_name
from drol_reproduction.mechanism import COLLAPSED, MechanismRow
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.protocol import shown

OWNERS_LAG, EVENTS_LAG = 1_000, 100  # lags of M1 and M2, in updates
POINTS = 0.20  # minimum difference of DROL(16) above its controls
WEIGHTS = {"drol": "bc_weight", "drol-control": "bc_weight", "fql": "alpha"}  # name of the weight of cloning against Q
SHOWN_LAGS = (1, 10, 100, 300, 1_000, 3_000)
PASSED, FAILED, OPEN = "passed", "failed", "not measured"
NOTHING = "No run has been measured yet."

Group = tuple[str, str]  # task and networks


@dataclass(frozen=True)
class Verdict:
    """The verdict on one expectation of the plan.

    Attributes:
        name: "M1", "M2" or "M3".
        where: Task and networks; empty if nothing was measured.
        verdict: "passed", "failed" or "not measured".
        reason: The numbers that decide it, or the runs that are missing.
    """

    name: str
    where: str
    verdict: str
    reason: str


def mechanism_verdicts(rows: Iterable[MechanismRow]) -> list[Verdict]:
    """Return the verdict on M1, M2 and M3 for every task and size of networks that was measured."""
    groups = grouped(rows)
    if not groups:
        return [Verdict(name, "", OPEN, NOTHING) for name in ("M1", "M2", "M3")]
    return [
        Verdict(name, group_name(group), *decide(own))
        for group, own in groups.items()
        for name, decide in (("M1", owners_verdict), ("M2", events_verdict), ("M3", spread_verdict))
    ]


def owners_verdict(rows: Sequence[MechanismRow]) -> tuple[str, str]:
    """Decide M1 from the rows of one task and one size of networks."""
    at = [row for row in rows if row.lag == OWNERS_LAG]
    ours = [row.changed for row in at if is_default(row)]
    controls = {
        "FQL": [row.changed for row in at if row.method == "fql" and has_paper_weight(row)],
        "DROL without Q": [row.changed for row in at if row.method == "drol" and row.setting("q_weight") == 0],
    }
    if not ours:
        return OPEN, f"no row of DROL({DEFAULT_K}) at lag {OWNERS_LAG:,}"
    reasons = [f"DROL({DEFAULT_K}) {shares(ours)}"]
    reasons += [f"{name} {shares(found) if found else OPEN}" for name, found in controls.items()]
    known = [min(ours) - max(found) >= POINTS for found in controls.values() if found]
    verdict = FAILED if not all(known) else PASSED if len(known) == len(controls) else OPEN
    return verdict, f"owner changed after {OWNERS_LAG:,} updates: {', '.join(reasons)}"


def events_verdict(rows: Sequence[MechanismRow]) -> tuple[str, str]:
    """Decide M2 from the rows of one task and one size of networks."""
    ours = [row for row in rows if row.lag == EVENTS_LAG and is_default(row)]
    known = [row for row in ours if row.rose_changed is not None and row.rose_kept is not None]
    if not known:
        return OPEN, f"no row of DROL({DEFAULT_K}) at lag {EVENTS_LAG:,} in which some owners changed and some did not"
    right = [risen(row) > 0 and row.nearest_if_kept > row.nearest_after for row in known]
    reason = (
        f"after {EVENTS_LAG:,} updates, old owners that rose in Q: "
        f"{shares([row.rose_changed or 0.0 for row in known])} of the changed, "
        f"{shares([row.rose_kept or 0.0 for row in known])} of the kept; data to nearest "
        f"{mean_of(known, 'nearest_before'):.3f} before, {mean_of(known, 'nearest_after'):.3f} after, "
        f"{mean_of(known, 'nearest_if_kept'):.3f} if old owners had kept their actions"
    )
    return PASSED if all(right) and len(known) == len(ours) else FAILED, reason


def spread_verdict(rows: Sequence[MechanismRow]) -> tuple[str, str]:
    """Decide M3 from the rows of one task and one size of networks."""
    spreads: dict[int, list[float]] = {}
    for row in last_lags(rows):
        if with_q(row) and row.setting("num_candidates") >= 4:
            spreads.setdefault(row.setting("num_candidates"), []).append(row.spread)
    if not spreads:
        return OPEN, "no row of DROL with K of 4 or more"
    reason = ", ".join(f"K = {count}: {numbers(found)}" for count, found in sorted(spreads.items()))
    collapsed = any(min(found) < COLLAPSED for found in spreads.values())
    return FAILED if collapsed else PASSED, f"spread over that of the data, limit {COLLAPSED}: {reason}"


def with_q(row: MechanismRow) -> bool:
    return row.method == "drol" and row.setting("q_weight") > 0


def is_default(row: MechanismRow) -> bool:
    return with_q(row) and has_paper_weight(row) and row.setting("num_candidates") == DEFAULT_K


def risen(row: MechanismRow) -> float:
    """Return the share of changed owners that rose in Q, minus the share of kept owners that rose."""
    return (row.rose_changed or 0.0) - (row.rose_kept or 0.0)


def has_paper_weight(row: MechanismRow) -> bool:
    """Return whether a run has the paper's weight of cloning; any weight counts on tasks that are not in the paper."""
    task, name = like_task(row.task), WEIGHTS.get(row.method)
    if name is None or task not in GROUP_OF_TASK:
        return True
    return row.setting(name) == task_settings(task, row.method).hyperparameters[name]


def label_of(row: MechanismRow) -> str:
    """Return the name of the method in tables and figures, with the settings that distinguish it."""
    count, weight = row.setting("num_candidates"), WEIGHTS.get(row.method)
    name = row.method.removesuffix("-control").upper() + (f"({count})" if count else "")
    notes = [f"{row.setting('winner')} winner"] if row.setting("winner") else []
    notes += ["without Q"] if row.setting("q_weight") == 0 else []
    notes += [] if has_paper_weight(row) or weight is None else [f"{weight} {row.setting(weight):g}"]
    return ", ".join([name, *notes])


def mechanism_tables(rows: Iterable[MechanismRow]) -> dict[str, str]:
    """Return the tables of docs/results.md: "owners", "events", "regimes" and "mechanism verdicts"."""
    rows = list(rows)
    verdicts = [(each.name, each.where or "-", each.verdict, each.reason) for each in mechanism_verdicts(rows)]
    decided = markdown(("", "where", "verdict", "numbers"), verdicts)
    if not rows:
        return {"owners": NOTHING, "events": NOTHING, "regimes": NOTHING, "mechanism verdicts": decided}
    return {
        "owners": owners_table(rows),
        "events": events_table(rows),
        "regimes": regimes_table(rows),
        "mechanism verdicts": decided,
    }


def owners_table(rows: Sequence[MechanismRow]) -> str:
    """Return the share of changed owners against the lag, with the distance of the latents in brackets."""

    def cell(own: Sequence[MechanismRow], lag: int) -> str:
        at = [row for row in own if row.lag == lag]
        distances = [row.latent_distance for row in at if row.latent_distance is not None]
        if not at:
            return "-"
        return shares([row.changed for row in at]) + (f" [{np.mean(distances):.2f}]" if distances else "")

    head = (*START, *(f"{lag:,}" for lag in SHOWN_LAGS))
    return markdown(head, [(*start, *(cell(own, lag) for lag in SHOWN_LAGS)) for start, own in labelled(rows)])


def events_table(rows: Sequence[MechanismRow]) -> str:
    """Return the table of the events after the lag of M2."""

    def cells(own: Sequence[MechanismRow]) -> list[str]:
        at = [row for row in own if row.lag == EVENTS_LAG]
        found: list[str] = []
        for name in ("rose_changed", "rose_kept", "rose_other"):
            known = [value for row in at if (value := getattr(row, name)) is not None]
            found.append(shares(known) if known else "-")
        found += [
            numbers([getattr(row, name) for row in at], 3) if at else "-"
            for name in ("nearest_before", "nearest_after", "nearest_if_kept")
        ]
        return found

    head = (
        *START, "rose in Q: old owner, changed", "owner, kept", "another latent",
        "data to nearest: before", "after", "if old owners had kept",
    )  # fmt: skip
    return markdown(head, [(*start, *cells(own)) for start, own in labelled(rows)])


def regimes_table(rows: Sequence[MechanismRow]) -> str:
    """Return the spread and the share of states in each regime after the lag of M1."""

    def cells(own: Sequence[MechanismRow]) -> list[str]:
        at = [row for row in own if row.lag == OWNERS_LAG]
        regimes = [
            shares([getattr(row, name) for row in at]) if at else "-" for name in ("stable", "handed_over", "collapsed")
        ]
        return [numbers([row.spread for row in last_lags(own)]), *regimes]

    head = (*START, "spread over the data's", "stable", "handed over", "collapsed")
    return markdown(head, [(*start, *cells(own)) for start, own in labelled(rows)])


START = ("task, networks", "method", "seeds", "from update")


def labelled(rows: Iterable[MechanismRow]) -> list[tuple[tuple[str, str, int, str], list[MechanismRow]]]:
    """Return the first cells of a table's line and the rows, for every method in every group."""
    lines = []
    for group, members in grouped(rows).items():
        for label in dict.fromkeys(label_of(row) for row in members):
            own = [row for row in members if label_of(row) == label]
            steps = ", ".join(f"{step:,}" for step in sorted({row.step for row in own}))
            lines.append(((group_name(group), label, len({row.seed for row in own}), steps), own))
    return lines


def grouped(rows: Iterable[MechanismRow]) -> dict[Group, list[MechanismRow]]:
    """Return rows by task and networks, of the newest checkpoint of each run; DROL first, then the other methods."""
    rows = list(rows)
    newest: dict[tuple, int] = {}
    for row in rows:
        newest[row.run] = max(row.step, newest.get(row.run, 0))
    groups: dict[Group, list[MechanismRow]] = {}
    for row in sorted(rows, key=order):
        if row.step == newest[row.run]:
            groups.setdefault((row.task, networks(row)), []).append(row)
    return dict(sorted(groups.items()))


def order(row: MechanismRow) -> tuple:
    """Return the sort key of a row: DROL(16) first, then the rest of DROL, its controls and others."""
    return row.task, not is_default(row), row.method != "drol", row.method, label_of(row), row.seed, row.lag


def networks(row: MechanismRow) -> str:
    """Return the size of the networks, such as 4x512."""
    return shown(row.setting("hidden_sizes"))


def group_name(group: Group) -> str:
    return f"{short_name(group[0])}, {group[1]}"


def last_lags(rows: Iterable[MechanismRow]) -> list[MechanismRow]:
    """Return the row with the largest lag of each run."""
    last = {row.run: row for row in sorted(rows, key=lambda row: row.lag)}
    return list(last.values())


def mean_of(rows: Sequence[MechanismRow], name: str) -> float:
    return float(np.mean([getattr(row, name) for row in rows]))


def shares(values: Sequence[float]) -> str:
    """Return the mean of shares in percent, and their range if there are several."""
    return ranged(values, lambda value: f"{value:.0%}")


def numbers(values: Sequence[float], digits: int = 2) -> str:
    """Return the mean of numbers, and their range if there are several."""
    return ranged(values, lambda value: f"{value:.{digits}f}")


def ranged(values: Sequence[float], show: Callable[[float], str]) -> str:
    low, high = show(min(values)), show(max(values))
    return show(float(np.mean(values))) + (f" ({low} to {high})" if low != high else "")
