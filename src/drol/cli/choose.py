"""`drol choose`."""

from pathlib import Path

from drol.bounds import check_at_least
from drol.cli.flags import Parser, whole_number
from drol.experiments.choose import TRUST, choose

EPILOG = """examples:
  drol choose runs/a runs/b                  every saved policy of both, the best first
  drol choose runs/mine --last 3             only the last three checkpoints
  drol evaluate runs/mine --offline --every-step; drol choose runs/mine        where there is no simulator

Episodes decide where there are any; else what `drol evaluate --offline` found."""


def run(arguments: list[str]) -> int:
    parser = Parser("choose", "Rank checkpoints, seeds and runs of a task; say how far that may be trusted.", EPILOG)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders of one task")
    parser.add_argument("--last", type=whole_number, metavar="N", help="only the last N saved steps of each run")
    parser.add_argument("--show", type=whole_number, default=10, metavar="N", help="lines to print (default: 10)")
    parsed = parser.parse(arguments)
    check_at_least("--show", parsed.show, 1)
    choice = choose(parsed.runs, parsed.last)
    print(f"  {choice.evidence:>13s}  95% interval    episodes  outside data  policy")
    for each in choice.candidates[: parsed.show]:
        interval = "-" if each.interval is None else f"{each.interval[0]:.1f} to {each.interval[1]:.1f}"
        share = "-" if each.outside_support is None else f"{each.outside_support:.0%}"
        drawn = f", best of {each.best_of}" if (each.best_of or 1) > 1 else ""
        mark = "*" if each in choice.tied else " "
        where = f"{each.run} step {each.step:,} seed {each.seed}{drawn}"
        print(f"{mark} {each.value:13.1f}  {interval:14s}  {each.episodes or '-':>8}  {share:>12s}  {where}")
    if len(choice.candidates) > parsed.show:
        print(f"  and {len(choice.candidates) - parsed.show} more")
    print(f"ranked by {choice.evidence}: {TRUST[choice.evidence]}")
    print(f"verdict: {choice.verdict}")
    best = choice.best
    drawn = f" --best-of {best.best_of}" if (best.best_of or 1) > 1 else ""
    print(f"to take the first: drol export {best.run} --step {best.step} --seed {best.seed}{drawn} --out bundle")
    return 0
