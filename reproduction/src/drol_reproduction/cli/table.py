"""`drol paper table`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.errors import InputError
from drol.storage import write_whole
from drol_reproduction.cli.flags import add_result_flags, results_from
from drol_reproduction.render import STYLES, render
from drol_reproduction.scores import PROTOCOLS
from drol_reproduction.table import TABLES, make_table

EPILOG = """examples:
  drol paper table 1                            the twelve families, from runs/paper/paper
  drol paper table 1 --scale small              from runs/paper/small
  drol paper table full --results results/paper_small.csv --format markdown
  drol paper table 1 --format latex --out table.tex"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper table", "Print a table of the paper from the existing runs.", EPILOG)
    parser.add_argument("which", choices=TABLES, help="1: the families; full: every task")
    add_result_flags(parser)
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default="fql",
        help="fql: mean of the last three evaluations on OGBench, the last on D4RL; last; best (default: fql)",
    )
    parser.add_argument("--format", choices=[*STYLES], default="text", help="how it is written (default: text)")
    parser.add_argument("--out", type=Path, help="write the table to this file instead of printing it")
    parsed = parser.parse(arguments)
    if parsed.out and not parsed.out.absolute().parent.is_dir():
        raise InputError(f"cannot write {parsed.out}: the folder {parsed.out.absolute().parent} does not exist")
    results = results_from(parsed)
    text = render(make_table(results, parsed.which, parsed.protocol), parsed.format)
    if parsed.out:
        write_whole(parsed.out, text)
        print(f"table: {parsed.out}")
    else:
        print(text, end="")
    return 1 if results.skipped else 0
