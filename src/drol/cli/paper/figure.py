"""`drol paper figure`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError, unknown_name
from drol.experiments.documents import fill_document

FIGURES = {"1": "overview: a tied sample and a routed one under the same push of Q"}
EPILOG = "figures:\n" + "\n".join(f"  {name}  {text}" for name, text in FIGURES.items())


def run(arguments: list[str]) -> int:
    parser = Parser("paper figure", "Make a figure of the paper, computed, and print its numbers.", EPILOG)
    parser.add_argument("figure", help=f"which one: {', '.join(FIGURES)}")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where it goes (default: this folder)")
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked caption is made")
    parsed = parser.parse(arguments)
    if parsed.figure not in FIGURES:
        raise unknown_name("figure", parsed.figure, FIGURES, "`drol paper figure --help` lists them all")
    if parsed.out.exists() and not parsed.out.is_dir():
        raise InputError(f"--out is {parsed.out}, which is a file; name a folder")
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    try:
        from drol.paper.figures.overview import make_overview
    except ModuleNotFoundError as error:
        raise InputError(f"figures need {error.name}; install it with: pip install 'drol[report]'") from error
    keep_compiled_programs()
    parsed.out.mkdir(parents=True, exist_ok=True)
    caption = make_overview(parsed.out)
    print(caption)
    print(f"wrote {parsed.out / 'overview.png'}")
    if parsed.document:
        fill_document(parsed.document, f"drol paper figure {parsed.figure}", {"caption": caption})
        print(f"wrote {parsed.document}")
    return 0
