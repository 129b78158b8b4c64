"""`drol paper propositions`."""

import json
from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.storage import write_whole
from drol_reproduction.documents import fill_document

EPILOG = """examples:
  drol paper propositions                        every number that docs/propositions.md shows, as Markdown
  drol paper propositions --out propositions     and the figures and propositions.json in a folder
  drol paper propositions --out docs/images --json results/propositions.json --document docs/propositions.md
                                                 make again what the documents quote"""


def run(arguments: list[str]) -> int:
    parser = Parser("paper propositions", "Compute the paper's five propositions: about two minutes.", EPILOG)
    parser.add_argument("--out", type=Path, metavar="DIR", help="draw the figures into this folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the numbers (default: DIR/propositions.json)")
    parser.add_argument("--document", type=Path, metavar="FILE", help="a Markdown file whose marked tables are made")
    parsed = parser.parse(arguments)
    numbers_file = parsed.json or (parsed.out and parsed.out / "propositions.json")
    if parsed.json and not parsed.json.absolute().parent.is_dir():
        raise InputError(f"--json is {parsed.json}; it must be a file in a folder that exists")
    if parsed.document and not parsed.document.is_file():
        raise InputError(f"--document is {parsed.document}; it must be a Markdown file that exists")
    if parsed.out and parsed.out.exists() and not parsed.out.is_dir():
        raise InputError(f"--out is {parsed.out}, which is a file; name a folder")
    try:
        from drol.reports.figure_style import save_figure
        from drol_reproduction.propositions.proposition_figures import FIGURES
        from drol_reproduction.propositions.proposition_numbers import all_numbers
        from drol_reproduction.propositions.proposition_tables import COMMAND, proposition_tables
    except ModuleNotFoundError as error:
        raise InputError(f"the propositions need {error.name}; install it with: pip install 'drol[report]'") from error
    keep_compiled_programs()
    numbers = all_numbers()
    tables = proposition_tables(numbers)
    print("\n\n".join(f"### {name}\n{table}" for name, table in tables.items()))
    if parsed.out:
        parsed.out.mkdir(parents=True, exist_ok=True)
        for name, draw in FIGURES.items():
            save_figure(draw(), parsed.out / f"proposition-{name}.png", dpi=110)
            print(f"wrote {parsed.out / f'proposition-{name}.png'}")
    if numbers_file:
        write_whole(numbers_file, json.dumps(numbers, indent=2) + "\n")
        print(f"wrote {numbers_file}")
    if parsed.document:
        fill_document(parsed.document, COMMAND, tables)
        print(f"wrote {parsed.document}")
    return 0
