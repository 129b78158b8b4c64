"""`drol data show`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError, plain
from drol.tasks import load_task

FORMATS = (".png", ".svg", ".pdf")
EPILOG = """examples:
  drol data show pointmaze-medium-navigate-singletask-task1-v0
  drol data show pointmaze-medium-navigate-singletask-task3-v0 --out task3.svg"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "data show",
        "Draw the data of a task: returns, lengths, actions and, in a maze, where it has been.",
        EPILOG,
    )
    parser.add_argument("name", help="a task; `drol data list` names them")
    parser.add_argument("--dataset", type=Path, metavar="PATH", help="a file to use in place of the task's own")
    parser.add_argument("--out", type=Path, metavar="PATH", help="the picture (default: NAME.png in this folder)")
    parsed = parser.parse(arguments)
    out = parsed.out or Path(parsed.name.replace("/", "-").lstrip(".") + ".png")
    if out.suffix not in FORMATS:
        raise InputError(f"--out is {out}; its name must end in {', '.join(FORMATS)}")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"--out is {out}; it must be a file in a folder that exists")
    keep_compiled_programs()
    task = load_task(parsed.name, parsed.dataset)
    try:
        from drol.experiments.report.data_figures import data_figure, describe
        from drol.experiments.report.style import save_figure
    except ModuleNotFoundError as error:
        raise InputError(f"pictures need {error.name}; install it with: pip install 'drol[report]'") from error
    for name, value in describe(task).items():
        print(plain(f"{name:14s} {value}"))
    save_figure(data_figure(task), out)
    print(f"{'picture':14s} {out}")
    return 0
