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
        "Write a page about the data of a task: episodes, distributions, coverage, effects of actions, oddities.",
        EPILOG,
    )
    parser.add_argument("name", help="a task or an imported dataset of `drol data list`")
    parser.add_argument("--dataset", type=Path, metavar="PATH", help="use this data file instead of the task's")
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="the page to write (default: NAME.html in this folder)"
    )
    parsed = parser.parse(arguments)
    name = own_dataset(parsed.name)
    out = parsed.out or Path(name.replace("/", "-").lstrip(".") + ".html")
    if out.suffix != ".html":
        raise InputError(f"--out is {out}; its name must end in .html")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"--out is {out}; it must be a file in an existing folder")
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
        print(plain(f"{'note':14s} {note}"))
    print(f"{'page':14s} {out}")
    return 0


def own_dataset(name: str) -> str:
    """Return the task of a name; add the prefix files/ to the name of an imported dataset."""
    return f"{PREFIX}{name}" if name in dataset_names() else name
