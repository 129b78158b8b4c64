"""`drol results check`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.results.merge import check_results


def run(arguments: list[str]) -> int:
    parser = Parser("results check", "Find faults in results; exit with 1 if there are any.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a results file, a run, a folder with runs")
    found = check_results(parser.parse(arguments).files)
    print("\n".join(found) if found else "no faults found")
    return 1 if found else 0
