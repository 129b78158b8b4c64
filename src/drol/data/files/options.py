"""How steps are to be understood, above all their ends, and what was met while reading them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from drol.data.actions import ActionBox
from drol.errors import InputError

FIELDS = ("observation", "action", "reward", "terminal", "timeout", "end", "episode", "next_observation")
ENDS = ("flags", "terminal", "timeout")
FILL_REWARDS = ("zero", "end")


@dataclass(frozen=True)
class Reading:
    """How steps are to be understood."""

    ends: str | None = (
        None  # flags: as marked; terminal or timeout: every end is one; None: as marked, if that is clear
    )
    fill_reward: str | None = None  # where there is no reward; zero: 0; end: 1 on the last transition of each episode
    file_is_episode: bool = False
    drop_nonfinite: bool = False
    box: ActionBox | None = None  # scale actions from this box; None: they must lie in [-1, 1]

    def __post_init__(self) -> None:
        for name, value, allowed in (("ends", self.ends, ENDS), ("fill_reward", self.fill_reward, FILL_REWARDS)):
            if value not in (None, *allowed):
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")


@dataclass
class Counts:
    """What was met on the way from steps to rows."""

    steps: int = 0
    terminals: int = 0  # episodes that ended
    cuts: int = 0  # episodes that were cut: by a time limit, the end of a file or a gap
    gaps: int = 0  # of these, because next_observation is not what the next step observed
    without_next: int = 0  # final steps without a next observation, kept only as the observation that ends an episode
    too_short: int = 0  # episodes of a single step without a next observation: no transition, left out
    dropped: int = 0  # steps that were left out because they are not finite
    not_finite: dict[str, int] = field(default_factory=dict)  # values in each array that are NaN or infinite
    converted: dict[str, str] = field(default_factory=dict)  # arrays that became float32, and what they were


def understand_ends(names: Mapping[str, str], reading: Reading) -> str:
    """The reading of ends to use; it is refused to guess. `names` gives the name in the file of each field there is."""
    marks = [names[name] for name in ("terminal", "timeout", "end", "episode") if name in names]
    if not marks and not reading.file_is_episode:
        raise InputError(
            "nothing says where episodes end; name what does with --terminal, --timeout, --end or --episode, "
            "or pass --file-is-episode"
        )
    if reading.ends == "flags" and "terminal" not in names:
        raise InputError("ends is flags, but no array marks terminals; name it with --terminal")
    if reading.ends is not None:
        return reading.ends
    if "terminal" in names and ("timeout" in names or "episode" in names or reading.file_is_episode):
        return "flags"
    trust = ", --ends flags if only the other ends are time limits" if "terminal" in names else ""
    raise InputError(
        "it is not clear which ends are true ends and which are time limits: there is only "
        f"{', '.join(marks) or 'the end of each file'}; pass --ends terminal or --ends timeout if all are alike{trust}"
        f", or name the other flag with --{'timeout' if 'terminal' in names else 'terminal'}"
    )
