"""The report of a run: one page with its score, its curves and what its policy does."""

from collections.abc import Callable
from pathlib import Path

from drol.errors import InputError
from drol.runs.run import Run, open_run


def report(
    run: Run | Path | str, beside: Run | Path | str | None = None, note: Callable[[str], None] | None = None
) -> Path:
    """Draw the figures of a run and write its page, with what is there; the page says what is missing.

    Args:
        run: A run, or its folder.
        beside: Another run whose routing is drawn beside, such as one that only clones, to see what Q changed.
        note: Called with a line for each thing that is missing. What is damaged is added to `run.damage`.

    Returns:
        The page, `report.html` in the folder of the run; it needs no other file. The figures are also saved as PNG
        files in `figures`.

    Example:
        >>> import drol
        >>> drol.report("runs/demo")  # doctest: +SKIP
        PosixPath('runs/demo/report.html')
    """
    run = run if isinstance(run, Run) else open_run(run)
    beside = open_run(beside) if isinstance(beside, Path | str) else beside
    try:
        from drol.experiments.report.page import write_page
    except ModuleNotFoundError as error:
        raise InputError(f"reports need {error.name}; install it with: pip install 'drol[report]'") from error
    for words in write_page(run, beside):
        if note:
            note(words)
    return run.directory.report
