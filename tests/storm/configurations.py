"""The runs of the storm: all ten methods, one or two seeds, background evaluation, online steps, data on disk."""

from dataclasses import dataclass
from pathlib import Path

INTERVAL = 20  # updates between two checkpoints, and so the most work that a kill may cost
LOG_INTERVAL = 10
EVALUATION_INTERVAL = 200


@dataclass(frozen=True)
class Configuration:
    """A small run: enough updates for a dozen kills, and networks so small that saving takes longer than training."""

    method: str
    seeds: int = 1
    steps: int = 1200
    online_steps: int = 0
    background: bool = False
    on_disk: bool = False

    @property
    def name(self) -> str:
        words = [self.method, "1 seed" if self.seeds == 1 else f"{self.seeds} seeds"]
        words += ["background evaluation"] * self.background + ["online"] * bool(self.online_steps)
        return ", ".join(words + ["data on disk"] * self.on_disk)

    @property
    def total_steps(self) -> int:
        return self.steps + self.online_steps

    def command(self, folder: Path) -> list[str]:
        """Return the arguments of `drol`."""
        task = "storm/disk" if self.on_disk else "storm/memory"
        flags = [
            "train",
            task,
            "--algorithm",
            self.method,
            "--preset",
            "smoke",
            "--seeds",
            *map(str, range(self.seeds)),
        ]
        flags += ["--steps", str(self.steps), "--online-steps", str(self.online_steps)]
        flags += ["--log-interval", str(LOG_INTERVAL), "--checkpoint-interval", str(INTERVAL)]
        flags += ["--evaluation-interval", str(EVALUATION_INTERVAL), "--evaluation-episodes", "3", "--processes", "2"]
        return flags + ["--background-evaluation"] * self.background + ["--out", str(folder)]


CONFIGURATIONS = (
    Configuration("bc", on_disk=True),
    Configuration("drol"),
    Configuration("fql", seeds=2, background=True),
    Configuration("rebrac", seeds=2, steps=600, online_steps=300),
    Configuration("iql", steps=600, online_steps=300, background=True),
    Configuration("deflow", on_disk=True),
    Configuration("fawac", background=True),
    Configuration("drol", seeds=2, steps=600, online_steps=300, background=True),
    Configuration("fbrac", seeds=2),
    Configuration("ifql", seeds=2, on_disk=True),
    Configuration("sorl"),
    Configuration("drol", on_disk=True, background=True),
)
