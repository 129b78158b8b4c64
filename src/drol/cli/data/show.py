"""`drol data show`."""

from pathlib import Path

from drol.cli.flags import Parser
from drol.cli.jax_cache import keep_compiled_programs
from drol.data.store.layout import dataset_names
from drol.errors import InputError, plain
from drol.tasks import load_task
from drol.tasks.own_data import PREFIX

EPILOG = """examples:
  drol data show files/arm
  drol data show pointmaze-medium-navigate-singletask-task1-v0 --out maze.html"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "data show",
        "Show the data of a task as a page: episodes, marginals, coverage, what actions move, what is strange.",
        EPILOG,
    )
    parser.add_argument("name", help="a task, or a dataset of your own; `drol data list` names them")
    parser.add_argument("--dataset", type=Path, metavar="PATH", help="a file to use in place of the task's own")
    parser.add_argument("--out", type=Path, metavar="PATH", help="the page (default: NAME.html in this folder)")
    parsed = parser.parse(arguments)
    name = own_dataset(parsed.name)
    out = parsed.out or Path(name.replace("/", "-").lstrip(".") + ".html")
    if out.suffix != ".html":
        raise InputError(f"--out is {out}; its name must end in .html")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"--out is {out}; it must be a file in a folder that exists")
    keep_compiled_programs()
    task = load_task(name, parsed.dataset)
    try:
        from drol.reports.dataset_page import write_data_page
        from drol.reports.task_data_figures import describe
    except ModuleNotFoundError as error:
        raise InputError(f"pictures need {error.name}; install it with: pip install 'drol[report]'") from error
    for title, value in describe(task).items():
        print(plain(f"{title:14s} {value}"))
    for note in write_data_page(task, out):
        print(plain(f"{'to know':14s} {note}"))
    print(f"{'page':14s} {out}")
    return 0


def own_dataset(name: str) -> str:
    """Return the task of a name: that of an imported dataset may be given without files/."""
    return f"{PREFIX}{name}" if name in dataset_names() else name
