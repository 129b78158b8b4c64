"""Write the generated parts of a method's page: its settings, and its scores here and in print."""

import dataclasses
import sys
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np

from drol.algorithms import ALGORITHMS, Algorithm
from drol.bounds import allowed_words
from drol.cli.algorithms import cell, columns, first_line, show, steps
from drol.presets.settings import family_rows
from drol.results.result_files import read_results
from drol_reproduction.experiments import short_name
from drol_reproduction.propositions.proposition_tables import markdown
from drol_reproduction.published import Published, family_cells
from drol_reproduction.render import number
from drol_reproduction.table import TITLES, scores_by_cell
from website.links import ROOT

RESULTS = ROOT / "results" / "paper_small.csv"


def hyperparameter_table(kind: type[Algorithm]) -> str:
    """Return a table of every hyperparameter: default, meaning and allowed values."""
    rows = [
        (f"`{field.name}`", show(field.default) or "-", field.metadata["description"], allowed_words(field))
        for field in dataclasses.fields(kind)
    ]
    return markdown(("setting", "default", "meaning", "allowed"), [tuple(map(escape, row)) for row in rows])


def escape(text: str) -> str:
    """Escape a text for a Markdown table."""
    return text.replace("|", r"\|").replace("*", r"\*")


def task_table(name: str) -> str:
    """Return the settings of the paper's tables for each family or task."""
    rows = family_rows(name)
    if not rows:
        return f"The paper's tables do not have `{name}`. Its defaults hold for every task."
    names = list(dict.fromkeys(each for row in rows for each in columns(row)))
    body = [(row.family, *(escape(cell(row, each)) for each in names), steps(row)) for row in rows]
    table = markdown(("task", *(f"`{each}`" for each in names), "updates"), body)
    marks = " Four values belong to the presets `paper`, `paper-tuned`, `released` and `released-tuned`."
    return f'??? info "Settings for each task of the paper"\n\n{indent(table)}\n\n    {marks.strip()}'


def indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@cache
def measured() -> Mapping[tuple[str, str], Mapping[int, float]]:
    """Return the scores of our runs at the small scale, by task and column of the paper's tables."""
    return scores_by_cell(read_results(RESULTS), "fql", [])


def columns_of(name: str) -> tuple[str, ...]:
    """Return the columns of the paper's tables that belong to an algorithm."""
    return ("drol", "drol*") if name == "drol" else (name,)


def score_tables(name: str) -> str:
    """Return a method's scores here and in the paper."""
    ours = [
        (short_name(task), TITLES[column], describe(own.values()))
        for (task, column), own in sorted(measured().items())
        if column in columns_of(name)
    ]
    here = markdown(("task", "method", "success (%)"), ours) if ours else "Not run yet."
    families = list(dict.fromkeys(family for family, _ in family_cells()))
    printed = [(column, [family_cells().get((family, column)) for family in families]) for column in columns_of(name)]
    printed = [(column, cells) for column, cells in printed if any(cells)]
    scale = "[small scale](../reproduction.md#the-scales)"
    text = f"**Here**, at the {scale}, mean over seeds (number of seeds in brackets):\n\n{here}\n\n"
    if not printed:
        return f"{text}**Published**: the paper's tables do not have this method."
    head = ("family", *(TITLES[column] for column, _ in printed))
    rows = [(family, *(shown(cells[place]) for _, cells in printed)) for place, family in enumerate(families)]
    where = "in the paper's table of families (1,000,000 updates; 500,000 on D4RL)"
    return f"{text}**Published**, {where}:\n\n{markdown(head, rows)}"


def shown(cell: Published | None) -> str:
    return number(cell.mean, cell.deviation) if cell else "-"


def describe(scores: Iterable[float]) -> str:
    own = list(scores)
    deviation = float(np.std(own, ddof=1)) if len(own) > 1 else None
    return f"{number(float(np.mean(own)), deviation)} ({len(own)})"


def generated(name: str) -> str:
    """Return the generated part of a method's page."""
    kind = ALGORITHMS[name]
    equations = (sys.modules[kind.__module__].__doc__ or "").strip()
    return "\n\n".join(
        [
            "## In the code",
            f"[`drol.{kind.__name__}`](../reference/algorithms.md#drol.{kind.__name__}) starts with:",
            f"```text\n{equations}\n```",
            "## Settings",
            hyperparameter_table(kind),
            task_table(name),
            "## Expected results",
            score_tables(name),
        ]
    )


def overview() -> str:
    """Return a table of all methods."""
    rows = [(f"[{name}]({name}.md)", first_line(kind)) for name, kind in ALGORITHMS.items()]
    return markdown(("method", "summary"), rows)
