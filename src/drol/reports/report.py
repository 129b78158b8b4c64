"""The report of one or more runs: a page with scores, curves and actions of the policies."""

from collections.abc import Iterable
from pathlib import Path

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.progress import Report
from drol.reports.selected_runs import Opened, open_runs
from drol.runs.run import Run, open_run

PAGE = "report.html"  # for several runs, in the current folder


def report(
    runs: Run | Path | str | Iterable[Run | Path | str],
    beside: Run | Path | str | None = None,
    out: Path | str | None = None,
    videos: int = 0,
    on_progress: Report | None = None,
) -> Path:
    """Write a page about one or more runs; the page and the logger `drol` list missing parts.

    docs/pages.md shows the pages.

    `damaged` of the first run is True if a file of the runs is damaged.

    Args:
        runs: Runs, their folders, or folders with runs below them; or one of these.
        beside: Another run whose metrics are also drawn, dashed, such as a run with cloning alone.
        out: The page; if None, `report.html` in the folder of one run, or in the current folder for several.
        videos: The number of episodes to record as videos for the first run of each group.
        on_progress: Called as `on_progress(done, total, what)` before each part of the page.

    Returns:
        The path of the page, which is self-contained.

    Example:
        >>> import drol
        >>> drol.report("runs/demo")  # doctest: +SKIP
        PosixPath('runs/demo/report.html')
    """
    check_at_least("videos", videos, 0)
    opened = runs if isinstance(runs, Opened) else open_runs(runs)
    beside = open_run(beside) if isinstance(beside, Path | str) else beside
    if beside is not None and len(opened) > 1:
        raise InputError(f"beside needs a single run, got {len(opened)}; give all runs to compare as `runs` instead")
    page = check_page(Path(out) if out is not None else opened[0].directory.report if len(opened) == 1 else Path(PAGE))
    try:
        from drol.reports.run_pages import write_report
    except ModuleNotFoundError as error:
        raise InputError(f"reports need {error.name}; install it with: pip install 'drol[report]'") from error
    write_report(opened, page, beside, videos, opened.skipped, on_progress)
    return page


def check_page(path: Path) -> Path:
    """Raise `InputError` if the page cannot be written, before any file is read."""
    if path.suffix != ".html":
        raise InputError(f"the page is {path}; its name must end in .html")
    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.absolute().parent} does not exist")
    return path
