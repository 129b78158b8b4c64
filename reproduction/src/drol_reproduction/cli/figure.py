"""`drol paper figure`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.results.result import Results
from drol_reproduction.cli.flags import add_result_flags, results_from
from drol_reproduction.documents import fill_document

EPILOG = """figures:
  1          overview: a tied sample and a routed one under the same push of Q
  2          Voronoi cells at one state of a trained run: spread, handoff, stable; and a GIF over training
  3          candidate distance, divergence and routed BC loss against K, and candidates.csv with ours beside the
             paper's; from runs also where no episode was played; run times with --bench
  4          score against K, the default and the best marked
  ownership  ownership of data actions against the lag, events, spread and regimes, with --mechanism
  curves     learning curves of our runs over public ones of the same tasks

examples:
  drol paper figure 1 --out figures
  drol train --preset laptop --evaluation-interval 2500 --out runs/cells
  drol paper figure 2 --run runs/cells
  drol paper figure 3 --scale small --bench results/bench.json
  drol paper figure 4 --results results/paper_small.csv
  drol paper figure curves --results results/paper_small.csv --other-protocols"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper figure", "Compute and draw a figure of the paper, and print its numbers.", EPILOG)
    parser.add_argument("figure", help="which one: 1, 2, 3, 4, ownership or curves")
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="the folder to write to (default: this folder)"
    )
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked caption is made")
    add_result_flags(parser)
    parser.add_argument("--run", type=Path, help="figure 2: a run with three policies after step 0")
    parser.add_argument("--bench", type=Path, metavar="FILE", help="what `drol bench --json` wrote, for figure 3")
    parser.add_argument("--mechanism", type=Path, metavar="FILE", help="what `drol paper mechanism` wrote")
    parser.add_argument(
        "--other-protocols", action="store_true", help="figure curves: also draw public curves with other settings"
    )
    parsed = parser.parse(arguments)
    if parsed.out.exists() and not parsed.out.is_dir():
        raise InputError(f"--out is {parsed.out}, which is a file; name a folder")
    for name in ("document", "bench", "mechanism"):
        path = getattr(parsed, name)
        if path and not path.is_file():
            raise InputError(f"--{name} is {path}; there is no such file")
    try:
        from drol_reproduction.figures.make import Sources, make_figure
    except ModuleNotFoundError as error:
        raise InputError(f"figures need {error.name}; install it with: pip install 'drol[report]'") from error
    keep_compiled_programs()
    results = results_from(parsed) if parsed.figure in ("3", "4", "curves") else Results()
    runs = parsed.results or [parsed.root / parsed.scale]
    sources = Sources(results, runs, parsed.run, parsed.bench, parsed.mechanism, parsed.other_protocols)
    caption = make_figure(parsed.figure, parsed.out, sources)
    print(caption)
    print(f"figure: in {parsed.out}")
    if parsed.document:
        fill_document(parsed.document, f"drol paper figure {parsed.figure}", {"caption": caption})
        print(f"wrote {parsed.document}")
    return 1 if results.skipped else 0
