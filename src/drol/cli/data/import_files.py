"""`drol data import`."""

import argparse
from pathlib import Path
from typing import Any

from drol.cli.flags import Parser, number, whole_number
from drol.data.clock import describe_sampling
from drol.data.dimensions import Naming
from drol.data.import_options import ENDS, FILL_REWARDS, ReadingOptions
from drol.data.importing.audit_notes import NOTHING_HELD_OUT
from drol.data.importing.import_files import Scaling, import_files
from drol.data.readers.fields import ALIASES
from drol.errors import counted, plain
from drol.machine import bytes_in_words
from drol.progress import Progress

EPILOG = """examples:
  drol data import flights.npz --out flights      observations, actions, rewards, terminals, timeouts
  drol data import walk.hdf5 --out walk           D4RL's flat arrays, or Minari's group for each episode
  drol data import demo.hdf5 --out lift --observation 'obs/robot0_*' obs/object --ends terminal      robomimic
  drol data import my_lerobot_folder --out arm --ends timeout --fill-reward end
  drol data import log.csv --out log --observation 'joint_*' speed --action torque_0 torque_1 --end done --ends timeout
  drol data import 'runs/*.csv' --out runs --file-is-episode --ends timeout --transform my_data:add_reward
  drol train files/flights                        then train on it, without an environment

Files are read in pieces. After an error, nothing is written."""

FIELD_HELP = {
    "observation": "observation before the action",
    "action": "action, in [-1, 1] unless --action-low and --action-high or --scale-actions are given",
    "reward": "reward of the action",
    "terminal": "true where the task ended: no value is bootstrapped",
    "timeout": "true where a time limit cut the episode: the next value is bootstrapped",
    "end": "true at the last step of an episode, for any reason; needs --ends",
    "episode": "number or name of the episode; consecutive equal values form an episode",
    "next_observation": "observation after the action, if it is recorded separately",
    "time": "seconds, a date or a count of steps; must increase within an episode",
    "success": "true where the task succeeded, for --fill-reward success",
    "held_out": "true in episodes to hold out for validation",
}
NAMED = ("observation", "action")
TEXTS = ("names", "units", "frames")


def add_reading_flags(parser: Parser) -> None:
    """Add the flags that describe the files; `drol data check` has them too."""
    group = parser.add_argument_group(
        "fields",
        "The arrays or columns of each field; several are concatenated. NAME may be a prefix with a star, or the "
        "part before a number; 'none' ignores the field. Usual names are found without a flag."
    )  # fmt: skip
    for field, text in FIELD_HELP.items():
        usual = ", ".join(ALIASES[field])
        group.add_argument(f"--{field.replace('_', '-')}", nargs="+", metavar="NAME", help=f"{text} (usual: {usual})")
    group = parser.add_argument_group("interpretation")
    group.add_argument(
        "--ends",
        choices=ENDS,
        help="flags: ends marked as terminal are true ends, all others are cuts; terminal or timeout: all ends are of "
        "this type (default: flags, if terminals and timeouts are both marked; otherwise required)",
    )
    group.add_argument("--file-is-episode", action="store_true", help="each file holds one episode")
    group.add_argument(
        "--fill-reward",
        choices=FILL_REWARDS,
        help="reward if none is recorded: zero, 1 on the last transition of each episode, or 1 where --success is true",
    )
    group.add_argument(
        "--transform",
        metavar="MODULE:FUNCTION",
        help="a Python function that maps a dict of columns to a dict of columns. It is called first, with all columns "
        "of a file: for rewards, filled gaps, sorted rows, derived observations (docs/data.md). The module is imported "
        "from this folder or an installed package",
    )
    group.add_argument(
        "--drop-nonfinite", action="store_true", help="drop steps with NaN or infinity and cut their episode there"
    )
    group.add_argument(
        "--split-at-gaps",
        type=number,
        metavar="SECONDS",
        help="cut episodes where two rows are further apart than this (in steps if the time counts steps)",
    )
    group.add_argument(
        "--scale-actions",
        action="store_true",
        help="scale actions by their range in the data: 2 (action - low) / (high - low) - 1",
    )
    group.add_argument(
        "--action-low",
        nargs="+",
        type=number,
        default=(),
        metavar="X",
        help="action bounds of the data, scaled to -1 and 1",
    )
    group.add_argument("--action-high", nargs="+", type=number, default=(), metavar="X", help="see --action-low")
    group = parser.add_argument_group(
        "names",
        "Names and units are stored with the dataset, the run and the policy. Column names are used without a flag.",
    )
    for what in NAMED:
        for text in TEXTS:
            one = "" if text == "names" else "; a single one holds for all"
            group.add_argument(
                f"--{what}-{text}", nargs="+", default=(), metavar="TEXT", help=f"{text} of its values, in order{one}"
            )


def parse_reading(parsed: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `import_files` and `audit_files` that describe the files."""
    reading = ReadingOptions(
        ends=parsed.ends,
        fill_reward=parsed.fill_reward,
        file_is_episode=parsed.file_is_episode,
        drop_nonfinite=parsed.drop_nonfinite,
        split_at_gaps=parsed.split_at_gaps,
    )
    return {
        "mapping": {field: getattr(parsed, field) for field in FIELD_HELP if getattr(parsed, field)},
        "reading": reading,
        "scaling": Scaling(parsed.scale_actions, tuple(parsed.action_low), tuple(parsed.action_high)),
        "transform": parsed.transform,
        "naming": {what: Naming(*(tuple(getattr(parsed, f"{what}_{text}")) for text in TEXTS)) for what in NAMED},
    }


def run(arguments: list[str]) -> int:
    parser = Parser("data import", "Import your own files as a dataset.", EPILOG)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files, folders, or patterns with a star")
    parser.add_argument(
        "--out", required=True, metavar="NAME", help="name of the dataset, stored below $DROL_DATA or ./datasets"
    )
    parser.add_argument("--replace", action="store_true", help="replace the dataset of this name")
    parser.add_argument(
        "--validation",
        type=number,
        metavar="X",
        help="share of episodes to hold out (default: the episodes marked in the files, otherwise 0.1)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="seed of the choice of held-out episodes (default: 0)"
    )
    parser.add_argument(
        "--max-bytes",
        type=whole_number,
        metavar="N",
        help="reject files that unpack to more (default: the free disk space)",
    )
    add_reading_flags(parser)
    parsed = parser.parse(arguments)
    with Progress("importing", "MB", scale=1e6) as progress:
        stored = import_files(
            parsed.files, parsed.out, validation=parsed.validation, seed=parsed.seed, replace=parsed.replace,
            max_bytes=parsed.max_bytes, report=progress.show, **parse_reading(parsed),
        )  # fmt: skip
    counts, splits = stored.manifest["counts"], stored.manifest["splits"]
    held_out = splits["validation"] or {"episodes": 0, "transitions": 0}
    size = sum(stored.nbytes(split) for split in stored.splits)
    print(
        f"{counted(counts['steps'], 'step')}: {counted(splits['train']['episodes'], 'episode')} to train on "
        f"({counted(splits['train']['transitions'], 'transition')}), {held_out['episodes']:,} held out "
        f"({held_out['transitions']:,})"
    )
    ends, cuts = counted(counts["terminals"], "true end"), counted(counts["cuts"], "cut")
    print(f"{ends}, {cuts} (a time limit, or the end of a file)")
    for line in used_and_not(stored.manifest):
        print(plain(line))
    if not held_out["episodes"]:
        print(f"note: {NOTHING_HELD_OUT}")
    print(f"wrote {stored.folder} ({bytes_in_words(size)})")
    print(f"next: drol data check {parsed.out}; drol train files/{parsed.out}")
    return 0


def used_and_not(manifest: dict[str, Any]) -> list[str]:
    """Return the used and the unused columns in a few lines; `drol data check` prints the details."""
    lines = [f"{field}: {name}" for field, name in manifest["fields"].items()]
    if manifest["sampling"]:
        lines.append(f"sampling: {describe_sampling(manifest['sampling'])}")
    names = ", ".join(name for name, _, _ in manifest["unused"])
    return [*lines, f"not used: {names or 'nothing'}", *(f"note: {note}" for note in manifest["notes"])]
