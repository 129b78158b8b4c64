"""Count the injected faults and their outcomes, as numbers and tables."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Count:
    """Of one kind of fault in one configuration."""

    fault: str
    configuration: str
    injected: int = 0
    survived: int = 0  # the next start went on from the newest whole checkpoint, or refused what it must
    most_lost: int = 0  # updates that were done again after it
    lost_more: int = 0  # how often more was lost than is promised
    wrong: int = 0  # faults in runs that did not end as the undisturbed run did


class Tally:
    """Counts by fault and configuration, and the runs that were compared."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], Count] = {}
        self.runs: dict[str, int] = defaultdict(int)
        self.files: dict[str, int] = defaultdict(int)

    def count(self, fault: str, configuration: str) -> Count:
        return self.counts.setdefault((fault, configuration), Count(fault, configuration))

    @property
    def kills(self) -> int:
        return sum(each.injected for each in self.counts.values() if each.fault.startswith("kill"))

    @property
    def faults(self) -> int:
        return sum(each.injected for each in self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": [
                {"configuration": name, "runs": count, "files compared": self.files[name]}
                for name, count in self.runs.items()
            ],
            "faults": [asdict(each) for each in self.counts.values()],
        }


def add_storms(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return two storms as one."""
    both = {name: first[name] + second[name] for name in ("minutes", "seeds", "faults")}
    runs: dict[str, dict[str, Any]] = {}
    for each in [*first["runs"], *second["runs"]]:
        own = runs.setdefault(each["configuration"], {**each, "runs": 0, "files compared": 0})
        own["runs"] += each["runs"]
        own["files compared"] += each["files compared"]
    skipped = [words for words in first["not tried"] if words in second["not tried"]]
    return {**second, **both, "runs": list(runs.values()), "not tried": skipped}


def storm_tables(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables of a storm in Markdown: by fault, and by configuration."""
    rows = found["faults"]
    lines = ["| fault | injected | survived | most updates done again | more lost than promised | wrong results |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for fault in sorted({row["fault"] for row in rows}, key=lambda name: order_of(name)):
        lines.append(line_of(fault, [row for row in rows if row["fault"] == fault]))
    lines.append(line_of("**all**", rows))
    runs = ["| configuration | runs | kills | other faults | files compared | wrong results |"]
    runs += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for each in found["runs"]:
        own = [row for row in rows if row["configuration"] == each["configuration"]]
        kills = sum(row["injected"] for row in own if row["fault"].startswith("kill"))
        others = sum(row["injected"] for row in own) - kills
        wrong = sum(row["wrong"] for row in own)
        runs.append(
            f"| {each['configuration']} | {each['runs']} | {kills} | {others} | {each['files compared']} | {wrong} |"
        )
    return {"faults": "\n".join(lines), "runs": "\n".join(runs), "storm": describe(found)}


def order_of(fault: str) -> tuple[int, str]:
    groups = ("kill", "SIG", "environment", "disk", "queue")
    return next((number for number, word in enumerate(groups) if fault.startswith(word)), len(groups)), fault


def line_of(name: str, rows: Iterable[dict[str, Any]]) -> str:
    rows = list(rows)
    totals = {key: sum(row[key] for row in rows) for key in ("injected", "survived", "lost_more", "wrong")}
    most = max((row["most_lost"] for row in rows), default=0)
    return (
        f"| {name} | {totals['injected']} | {totals['survived']} | {most} | {totals['lost_more']} | {totals['wrong']} |"
    )


def describe(found: dict[str, Any]) -> str:
    """Return one sentence on when and how a storm was made."""
    kills = sum(row["injected"] for row in found["faults"] if row["fault"].startswith("kill"))
    rest = sum(row["injected"] for row in found["faults"]) - kills
    skipped = f" Not tried: {'; '.join(found['not tried'])}." if found["not tried"] else ""
    rate = kills / max(found["minutes"], 1)
    seeds = " and ".join(f"`--seed {seed}`" for seed in found["seeds"])
    return (
        f"{found['minutes']} minutes of `./run storm` with {seeds} on {found['cores']} "
        f"core{'s' * (found['cores'] != 1)}, {found['date']}: {kills} kills and {rest} other faults in "
        f"{sum(each['runs'] for each in found['runs'])} runs, {rate:.1f} kills a minute.{skipped}"
    )
