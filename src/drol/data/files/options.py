"""Options for reading the steps of files, above all their ends, and counts of what was read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from drol.data.actions import ActionBox
from drol.errors import InputError

FIELDS = (
    "observation", "action", "reward", "terminal", "timeout", "end", "episode", "next_observation", "time", "held_out",
    "success", "formula",
)  # fmt: skip
ENDS = ("flags", "terminal", "timeout")
FILL_REWARDS = ("zero", "end", "success")
FILLS = ("previous",)


@dataclass(frozen=True)
class ReadingOptions:
    """Options that say how steps are to be understood.

    Args:
        ends: "flags": ends are as they are marked; "terminal" or "timeout": every end is one; None: as they are
            marked, if that is clear.
        fill_reward: Where there is no reward: "zero"; "end": 1 on the last transition of each episode; "success": 1
            where the success column is true.
        formula: A formula over columns that gives the reward.
        goal: Columns and the values that they have at a goal: the reward is 0 near it, else -1.
        goal_radius: How near is near enough.
        file_is_episode: Whether each file holds one episode.
        drop_nonfinite: Whether to leave out steps with NaN or infinity and to cut their episode there.
        fill: "previous": a value that is missing is the one before it in the episode.
        sort_by_time: Whether to sort the rows of each file by time, episode by episode.
        split_at_gaps: Seconds (or steps) between two rows beyond which an episode is cut; None: a gap is an error.
        box: The box that actions are scaled from; None: they must lie in [-1, 1].
    """

    ends: str | None = None
    fill_reward: str | None = None
    formula: str | None = None
    goal: tuple[str, ...] = ()
    goal_radius: float | None = None
    file_is_episode: bool = False
    drop_nonfinite: bool = False
    fill: str | None = None
    sort_by_time: bool = False
    split_at_gaps: float | None = None
    box: ActionBox | None = None

    def __post_init__(self) -> None:
        choices = (
            ("ends", self.ends, ENDS),
            ("fill_reward", self.fill_reward, FILL_REWARDS),
            ("fill", self.fill, FILLS),
        )
        for name, value, allowed in choices:
            if value not in (None, *allowed):
                raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
        given = [self.fill_reward is not None, self.formula is not None, bool(self.goal)]
        if sum(given) > 1:
            raise InputError("only one of --fill-reward, --reward-formula and --goal can give the reward; choose one")
        if self.goal_radius is not None and not self.goal:
            raise InputError("--goal-radius is given without --goal; give both or none")
        if self.split_at_gaps is not None and not self.split_at_gaps > 0:
            raise InputError(f"--split-at-gaps is {self.split_at_gaps:g}; it must be a time above 0")


@dataclass
class Counts:
    """Numbers of steps, ends and faults that were met on the way from steps to rows."""

    steps: int = 0
    terminals: int = 0  # episodes that truly ended
    cuts: int = 0  # episodes that were cut: by a time limit, the end of a file or a gap
    gaps: int = 0  # cuts where next_observation is not the observation of the next step
    without_next: int = 0  # final steps without a next observation, kept only as the observation that ends an episode
    too_short: int = 0  # episodes of a single step without a next observation: no transition, left out
    dropped: int = 0  # steps that were left out because they are not finite
    splits: int = 0  # episodes that were cut at gaps in time
    reached: int = 0  # transitions whose row has reached the goal
    filled: dict[str, int] = field(default_factory=dict)  # values in each array that were missing and filled in
    not_finite: dict[str, int] = field(default_factory=dict)  # values in each array that are NaN or infinite
    converted: dict[str, str] = field(default_factory=dict)  # arrays that became float32, and their types before


def understand_ends(names: Mapping[str, str], reading: ReadingOptions) -> str:
    """Return which of `ENDS` holds for some files; raise `InputError` where that is ambiguous.

    Args:
        names: The fields that the files have, each with its name in the files.
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
