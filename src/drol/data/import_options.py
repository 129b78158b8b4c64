"""Options for reading steps from files, especially the ends of episodes, and counts of the steps that were read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from drol.data.actions import ActionBox
from drol.errors import InputError

FIELDS = (
    "observation", "action", "reward", "terminal", "timeout", "end", "episode", "next_observation", "time", "held_out",
    "success",
)  # fmt: skip
ENDS = ("flags", "terminal", "timeout")
FILL_REWARDS = ("zero", "end", "success")


@dataclass(frozen=True)
class ReadingOptions:
    """Options that define how steps are interpreted.

    Args:
        ends: "flags": use the flags of the data; "terminal" or "timeout": every end is of this type; None: use the
            flags if they are unambiguous.
        fill_reward: The reward if the data have none. "zero": always 0; "end": 1 on the last transition of each
            episode; "success": 1 where the success column is true.
        file_is_episode: Whether each file holds one episode.
        drop_nonfinite: Whether to drop steps with NaN or infinity and to cut their episode there.
        split_at_gaps: The interval in seconds (or steps) beyond which an episode is cut; None: a gap is an error.
        box: The action bounds from which actions are scaled; None: actions must lie in [-1, 1].
    """

    ends: str | None = None
    fill_reward: str | None = None
    file_is_episode: bool = False
    drop_nonfinite: bool = False
    split_at_gaps: float | None = None
    box: ActionBox | None = None

    def __post_init__(self) -> None:
        choices = (
            ("ends", self.ends, ENDS),
            ("fill_reward", self.fill_reward, FILL_REWARDS),
        )
        for name, value, allowed in choices:
            if value not in (None, *allowed):
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
        if self.split_at_gaps is not None and not self.split_at_gaps > 0:
            raise InputError(f"--split-at-gaps is {self.split_at_gaps:g}; it must be a time above 0")


@dataclass
class Counts:
    """Numbers of steps, ends and problems, counted while steps are converted to rows."""

    steps: int = 0
    terminals: int = 0  # episodes that truly ended
    cuts: int = 0  # episodes cut by a time limit, the end of a file or a gap
    gaps: int = 0  # cuts where next_observation is not the observation of the next step
    without_next: int = 0  # final steps without a next observation; only their observation is used
    too_short: int = 0  # dropped episodes: a single step without a next observation, so no transition
    dropped: int = 0  # steps dropped because they are not finite
    splits: int = 0  # cuts at gaps in time
    not_finite: dict[str, int] = field(default_factory=dict)  # number of NaN or infinite values in each array
    converted: dict[str, str] = field(default_factory=dict)  # original types of arrays converted to float32


def understand_ends(names: Mapping[str, str], reading: ReadingOptions) -> str:
    """Return the value of `ENDS` that applies to some files; raise `InputError` if it is ambiguous.

    Args:
        names: The fields of the files, each with its name in the files.
        reading: The options of the user.
    """
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
