"""Render a table as text, Markdown, LaTeX in the paper's layout, HTML or CSV: our number above, the published below."""

import csv
import html
import io
from collections.abc import Callable
from itertools import groupby

from drol.errors import InputError, unknown_name
from drol.results.verdicts import TOO_FEW, p_words
from drol_reproduction.cells import Cell
from drol_reproduction.experiments import COLUMNS, TUNED
from drol_reproduction.table import TITLES, Table, TableRow

COLOURS = {"above": "#d5ece9", "below": "#f7dcdf", "within noise": "#eef1f5"}
MARKS = {"above": "^", "below": "v", "within noise": "=", TOO_FEW: "?", "not run": "", "not published": ""}
WORDS = {
    "fql": "mean of the last three evaluations (OGBench) or the last (D4RL)",
    "last": "last evaluation",
    "best": "best evaluation",
}
GAUSSIAN, ONE_STEP = ("bc", "iql", "rebrac"), ("fql", "drol", TUNED)
KINDS = {**dict.fromkeys(GAUSSIAN, "Gaussian Policies"), **dict.fromkeys(ONE_STEP, "One-step Methods")}
CSV_COLUMNS = (
    "row", "method", "mean", "deviation", "seeds", "tasks",
    "published_mean", "published_deviation", "low", "high", "p_holm", "verdict",
)  # fmt: skip
ITERATIVE = "Multi-step / Iterative Policies"


def render(table: Table, style: str = "text") -> str:
    """Return a table as text, markdown, latex, html or csv."""
    if style not in STYLES:
        raise unknown_name("format", style, STYLES)
    return STYLES[style](table)


def number(mean: float | None, deviation: float | None, between: str = "±") -> str:
    """Return a mean with its deviation; negative means are printed as 0, as in the paper."""
    if mean is None:
        return "-"
    return f"{max(mean, 0):.0f}" + (f"{between}{deviation:.0f}" if deviation is not None else "")


def published(cell: Cell, between: str = "±") -> str:
    return number(*cell.published, between) if cell.published else "-"


def row_title(row: TableRow) -> str:
    """Return the name of a row, with the number of tasks that were run if it is neither all nor none."""
    return row.name + (f" ({row.done} of {row.tasks} tasks)" if 0 < row.done < row.tasks else "")


def differences(table: Table) -> list[str]:
    """Return a line for each tested cell: its difference from the published number, interval, p and verdict."""
    return [
        f"{row.name}, {TITLES[method]}: {difference_words(cell)}"
        for row in table.rows
        for method, cell in row.cells.items()
        if cell.interval
    ]


def difference_words(cell: Cell) -> str:
    """Return the difference of a tested cell from the published number; for other cells, only the verdict."""
    if not cell.interval:
        return cell.verdict
    low, high = cell.interval
    ends = f"95% interval {low:+.0f} to {high:+.0f}, p {p_words(cell.p)} (Holm)"
    return f"{(low + high) / 2:+.0f} from the published number, {ends}: {cell.verdict}"


def caption(table: Table) -> str:
    """Return the caption, which explains the numbers."""
    what = "families" if table.which == "1" else "tasks"
    return (
        f"Scores of {what}: ours (mean±deviation over seeds, {WORDS[table.protocol]}), below them the published ones; "
        "^ ours are above, v below, = within noise, ? too few seeds"
    )


def as_text(table: Table) -> str:
    width = max(len(row_title(row)) for row in table.rows) + 2
    lines = [caption(table), " " * width + "".join(f"{TITLES[method]:>10s}" for method in COLUMNS)]
    for row in table.rows:
        ours = [number(cell.mean, cell.deviation) + "*" * cell.bold for cell in row.cells.values()]
        theirs = [published(cell) + MARKS[cell.verdict] for cell in row.cells.values()]
        lines.append(f"{row_title(row):{width}s}" + "".join(f"{each:>10s}" for each in ours))
        lines.append(f"{'  published':{width}s}" + "".join(f"{each:>10s}" for each in theirs))
    lines += ["* at least 0.95 of the best of our row", *differences(table)]
    return "\n".join([*lines, *(f"- {note}" for note in table.notes)]) + "\n"


def as_markdown(table: Table) -> str:
    lines = [caption(table) + ".", "", "| | " + " | ".join(TITLES[method] for method in COLUMNS) + " |"]
    lines.append("| --- |" + " --- |" * len(COLUMNS))
    for row in table.rows:
        cells = []
        for cell in row.cells.values():
            ours = number(cell.mean, cell.deviation)
            ours = f"<u>**{ours}**</u>" if cell.underlined else f"**{ours}**" if cell.bold else ours
            cells.append(f"{ours}<br>{published(cell)} {MARKS[cell.verdict]}".rstrip())
        lines.append(f"| {row_title(row)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"- {note}" for note in (*differences(table), *table.notes))]) + "\n"


def as_latex(table: Table) -> str:
    """Return the table in the layout of the paper: groups of columns, bold and underlined numbers, small deviations."""
    groups = [(kind, len(list(own))) for kind, own in groupby(COLUMNS, key=lambda method: KINDS.get(method, ITERATIVE))]
    heads, rules, first = [], [], 2
    for kind, count in groups:
        heads.append(rf"\multicolumn{{{count}}}{{c}}{{\texttt{{{kind}}}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{first + count - 1}}}")
        first += count
    lines = [
        "% " + caption(table),
        rf"\begin{{tabular}}{{l{'c' * len(COLUMNS)}}}",
        r"\toprule",
        r"\multicolumn{1}{c}{} & " + " & ".join(heads) + r" \\",
        " ".join(rules),
        " & ".join([r"\texttt{Task Category}", *(rf"\texttt{{{TITLES[method]}}}" for method in COLUMNS)]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        lines.append(" & ".join([rf"\texttt{{{row_title(row)}}}", *map(latex_cell, row.cells.values())]) + r" \\")
        theirs = [r"{\tiny " + published(cell, r" $\pm$ ") + "}" for cell in row.cells.values()]
        lines.append(" & ".join([r"{\tiny published}", *theirs]) + r" \\")
    notes = [f"% {note}" for note in table.notes]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes]) + "\n"


def latex_cell(cell: Cell) -> str:
    if cell.mean is None:
        return "$-$"
    ours = f"{max(cell.mean, 0):.0f}"
    ours = rf"\mathbf{{{ours}}}" if cell.bold else ours
    ours = rf"\underline{{{ours}}}" if cell.underlined else ours
    return f"${ours}$" + (rf" {{\tiny $\pm {cell.deviation:.0f}$}}" if cell.deviation is not None else "")


def as_html(table: Table) -> str:
    """Return an HTML page with the table; verdicts colour the cells."""
    try:
        from drol.reports.html.template import Section, page_html
    except ModuleNotFoundError as error:
        raise InputError(f"pages need {error.name}; install it with: pip install 'drol[report]'") from error
    head = "".join(f"<th>{html.escape(TITLES[method])}</th>" for method in COLUMNS)
    lines = []
    for row in table.rows:
        cells = []
        for cell in row.cells.values():
            ours = html.escape(number(cell.mean, cell.deviation))
            ours = f"<b>{ours}</b>" if cell.bold else ours
            ours = f"<u>{ours}</u>" if cell.underlined else ours
            colour = COLOURS.get(cell.verdict, "none")
            shown = f"{ours}<br><small>{published(cell)}</small>"
            cells.append(f"<td style='background:{colour}' title='{html.escape(difference_words(cell))}'>{shown}</td>")
        lines.append(f"<tr><th>{html.escape(row_title(row))}</th>{''.join(cells)}</tr>")
    content = f"<div class='wide'><table class='scores'><tr><th></th>{head}</tr>{''.join(lines)}</table></div>"
    title = "The paper's table of families" if table.which == "1" else "The paper's table of all tasks"
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    words = "Green: ours are above the published number; red: below; grey: within noise."
    headline = f"<p>{html.escape(caption(table).split(';')[0])}.</p>"
    return page_html(title, headline, [Section("Scores", words, content=content)], f"<ul>{notes}</ul>")


def as_csv(table: Table) -> str:
    """Return a line for each cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in table.rows:
        for method, cell in row.cells.items():
            theirs, ends = cell.published or (None, None), cell.interval or (None, None)
            numbers = (cell.mean, cell.deviation, cell.seeds, len(cell.tasks), *theirs, *ends, cell.p)
            shown = ["" if value is None else f"{value:g}" for value in numbers]
            writer.writerow((row.name, method, *shown, cell.verdict))
    return buffer.getvalue()


STYLES: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "html": as_html,
    "csv": as_csv,
}
