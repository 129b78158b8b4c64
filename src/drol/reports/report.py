"""The report of one run or several: one page with scores, curves and what policies do."""

from collections.abc import Iterable
from pathlib import Path

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.progress import Report
from drol.reports.selected_runs import Opened, open_runs
from drol.runs.run import Run, open_run

PAGE = "report.html"  # of several runs, in the current folder


def report(
    runs: Run | Path | str | Iterable[Run | Path | str],
    beside: Run | Path | str | None = None,
    out: Path | str | None = None,
    videos: int = 0,
    on_progress: Report | None = None,
) -> Path:
    """Write a page of one run or of several, with what is there; the page and the logger `drol` say what is missing.

    `damaged` of the first run is True if something of the runs is damaged.

    Args:
        runs: Runs, their folders, or folders with runs below them; or one of these.
        beside: Another run whose metrics are drawn dashed beside those of one run, such as one that only clones.
        out: The page; `report.html` in the folder of one run, or in the current folder for several, if None.
        videos: Episodes to record for the first run of each group, and to show as films.
        on_progress: Called as `on_progress(done, total, what)` before each part of the page.

    Returns:
        The page; it needs no other file and no network.

    Example:
        >>> import drol
        >>> drol.report("runs/demo")  # doctest: +SKIP
        PosixPath('runs/demo/report.html')
    """
    check_at_least("videos", videos, 0)
    opened = runs if isinstance(runs, Opened) else open_runs(runs)
    beside = open_run(beside) if isinstance(beside, Path | str) else beside
    if beside is not None and len(opened) > 1:
        raise InputError(f"beside is given with {len(opened)} runs; it is for one, so give all runs alike")
    page = check_page(Path(out) if out is not None else opened[0].directory.report if len(opened) == 1 else Path(PAGE))
    try:
        from drol.reports.run_pages import write_report
    except ModuleNotFoundError as error:
        raise InputError(f"reports need {error.name}; install it with: pip install 'drol[report]'") from error
    write_report(opened, page, beside, videos, opened.skipped, on_progress)
    return page


def check_page(path: Path) -> Path:
    """Refuse a page that cannot be written, before anything is read."""
    if path.suffix != ".html":
        raise InputError(f"the page is {path}; its name must end in .html")
    if not path.absolute().parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    return path
