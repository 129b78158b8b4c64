"""`drol data import`."""

import argparse
from pathlib import Path

from drol.cli.flags import Parser, number, whole_number
from drol.data.files.fields import ALIASES
from drol.data.files.options import ENDS, FILL_REWARDS, ReadingOptions
from drol.data.store.importing import Scaling, import_files
from drol.machine import bytes_in_words
from drol.progress import Progress

EPILOG = """examples:
  drol data import flights.npz --out flights      observations, actions, rewards, terminals, timeouts
  drol data import walk.hdf5 --out walk           D4RL's flat arrays, or Minari's group for each episode
  drol data import demo.hdf5 --out lift --observation 'obs/robot0_*' obs/object --ends terminal      robomimic
  drol data import my_lerobot_folder --out arm --ends timeout --fill-reward end
  drol data import log.csv --out log --observation 'joint_*' speed --action torque_0 torque_1 --end done --ends timeout
  drol train files/flights                        then train on it; no environment is needed

Every file is read in pieces. If anything is wrong, nothing is written."""

FIELD_HELP = {
    "observation": "what is seen before the action",
    "action": "what was done, in [-1, 1] unless a box is given",
    "reward": "what came of it",
    "terminal": "true where the task ended: nothing follows, no value is bootstrapped",
    "timeout": "true where a time limit cut the episode: the value beyond is bootstrapped",
    "end": "true at the last step of an episode, for whatever reason; needs --ends",
    "episode": "the number of the episode; an episode is a run of equal numbers",
    "next_observation": "what is seen after the action, if it is recorded apart",
}


def add_reading_flags(parser: Parser) -> None:
    """Add the flags that say what is in the files; `drol data check` has them too."""
    group = parser.add_argument_group(
        "fields",
        "The arrays or columns that stand for each field; several are joined side by side. NAME may be a prefix "
        "with a star, or what comes before numbers; 'none' ignores the field. Usual names are found without a flag."
    )  # fmt: skip
    for field, text in FIELD_HELP.items():
        usual = ", ".join(ALIASES[field])
        group.add_argument(f"--{field.replace('_', '-')}", nargs="+", metavar="NAME", help=f"{text} (usual: {usual})")
    group = parser.add_argument_group("how to understand them")
    group.add_argument(
        "--ends",
        choices=ENDS,
        help="flags: terminals are true ends, all other ends are cuts; terminal or timeout: every end is one "
        "(default: flags, where terminals and timeouts are both marked; else you must choose)",
    )
    group.add_argument("--file-is-episode", action="store_true", help="each file holds one episode")
    group.add_argument(
        "--fill-reward", choices=FILL_REWARDS, help="without a reward: 0, or 1 on the last transition of each episode"
    )
    group.add_argument(
        "--drop-nonfinite", action="store_true", help="leave out steps with NaN or infinity and cut their episode there"
    )
    group.add_argument(
        "--scale-actions",
        action="store_true",
        help="scale actions from their range in the data: 2 (action - low) / (high - low) - 1",
    )
    group.add_argument("--action-low", nargs="+", type=number, default=(), metavar="X", help="scale from this box")
    group.add_argument("--action-high", nargs="+", type=number, default=(), metavar="X", help="and this")


def parse_reading(parsed: argparse.Namespace) -> tuple[dict[str, list[str]], ReadingOptions, Scaling]:
    """Return the fields, how they are to be understood, and how actions are scaled."""
    mapping = {field: getattr(parsed, field) for field in FIELD_HELP if getattr(parsed, field)}
    reading = ReadingOptions(
        ends=parsed.ends,
        fill_reward=parsed.fill_reward,
        file_is_episode=parsed.file_is_episode,
        drop_nonfinite=parsed.drop_nonfinite,
    )
    return mapping, reading, Scaling(parsed.scale_actions, tuple(parsed.action_low), tuple(parsed.action_high))


def run(arguments: list[str]) -> int:
    parser = Parser("data import", "Make a dataset of your own files: npz, HDF5, Parquet or CSV.", EPILOG)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files, or a folder of LeRobot or Minari")
    parser.add_argument("--out", required=True, metavar="NAME", help="its name; $DROL_DATA or ./datasets holds it")
    parser.add_argument("--replace", action="store_true", help="replace a dataset of this name")
    parser.add_argument(
        "--validation", type=number, default=0.1, metavar="X", help="share of episodes to hold out (default: 0.1)"
    )
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="chooses them (default: 0)")
    parser.add_argument(
        "--max-bytes", type=whole_number, metavar="N", help="refuse files that unpack to more (default: the free disk)"
    )
    add_reading_flags(parser)
    parsed = parser.parse(arguments)
    mapping, reading, scaling = parse_reading(parsed)
    with Progress("importing", "MB", scale=1e6) as progress:
        stored = import_files(
            parsed.files, parsed.out, mapping, reading, scaling, parsed.validation, parsed.seed,
            replace=parsed.replace, max_bytes=parsed.max_bytes, report=progress.show,
        )  # fmt: skip
    counts, splits = stored.manifest["counts"], stored.manifest["splits"]
    held_out = splits["validation"] or {"episodes": 0, "transitions": 0}
    size = sum(stored.nbytes(split) for split in stored.splits)
    print(
        f"{counts['steps']:,} steps: {splits['train']['episodes']:,} episodes to train on "
        f"({splits['train']['transitions']:,} transitions), {held_out['episodes']:,} held out "
        f"({held_out['transitions']:,})"
    )
    print(
        f"{counts['terminals']:,} episodes truly end, {counts['cuts']:,} were cut (a time limit, or the end of a file)"
    )
    print(f"wrote {stored.folder} ({bytes_in_words(size)})")
    print(f"next: drol data check {parsed.out}; drol train files/{parsed.out}")
    return 0
