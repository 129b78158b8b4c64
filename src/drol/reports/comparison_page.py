"""The page of a comparison: tables, learning curves, probability of improvement, performance profiles."""

import html
from pathlib import Path

from drol.reports import comparison_figures
from drol.reports.chart_places import SCRIPTS, Page
from drol.reports.html.tables import table
from drol.reports.html.template import Section, asset, page_html
from drol.reports.learning_curves import learning_charts, legend_of
from drol.results.compare import Comparison
from drol.results.comparison_tables import heading, overall_table, task_table
from drol.storage import write_whole

SCORES_CAPTION = (
    "Mean and deviation are over training seeds. The interval of a mean is Student's over seeds; for success rates it "
    "is at least as wide as Wilson's over all episodes. The interval of a difference covers what the training seeds "
    "leave open (Welch) and, for success rates, what the episodes leave open: paired by episode seed where both groups "
    "played the same ones, else Newcombe's. Verdicts follow from p, which Holm's correction has raised for all "
    "comparisons of this page; they need three seeds of each group."
)
CURVES_CAPTION = "The mean over seeds at every evaluation; the band is its 95% interval, made as in the tables."
OVERALL_CAPTION = (
    "IQM is the mean of all runs without the lowest and the highest quarter. P(better) is the probability that a run "
    "is better than one of the baseline on the same task, ties counting half. Intervals are stratified bootstraps: the "
    "seeds of each task are drawn anew."
)
PROFILE_CAPTION = "For each score, the share of runs above it; tasks count alike. A curve above another one is better."


def write_page(comparison: Comparison, path: Path) -> None:
    """Write a comparison as one page that needs no other file."""
    foot = "<p>Made by <code>drol compare</code>; docs/comparing.md says what each number means.</p>"
    page, seeds = Page(), sorted({seed for group in comparison.groups for seed in group.chosen})
    charts = page.chart_html(learning_charts(comparison.groups, comparison.labels, seeds), "large")
    curves = Section("Learning", CURVES_CAPTION, content=charts)
    scores, *others = comparison_sections(comparison)
    data = {"groups": legend_of(comparison.labels, seeds), "charts": page.charts, "players": page.players}
    scripts, head = [asset(*each) for each in SCRIPTS], headline_of(comparison)
    write_whole(path, page_html(title_of(comparison), head, [scores, curves, *others], foot, scripts, data))


def title_of(comparison: Comparison) -> str:
    """Return how many groups there are, and on what."""
    labels, tasks = comparison.labels, comparison.tasks
    return f"{len(labels)} groups on {tasks[0] if len(tasks) == 1 else f'{len(tasks)} tasks'}"


def headline_of(comparison: Comparison) -> str:
    """Return what is compared with what, and what a reader must know."""
    notes = "".join(f"<li>{html.escape(line)}</li>" for line in (*comparison.notes, *comparison.skipped))
    baseline = html.escape(comparison.baseline)
    lead = f"Compared with <code>{baseline}</code>; a difference within {comparison.margin:g} is equal."
    return f"<p>{lead}</p>" + (f"<ul>{notes}</ul>" if notes else "")


def comparison_sections(comparison: Comparison) -> list[Section]:
    """Return the scores first, then what they amount to over all tasks."""
    tables = "".join(
        f"<h3>{html.escape(heading(comparison, task))}</h3>{table(*task_table(comparison, task))}"
        for task in comparison.tasks
    )
    sections = [Section("Scores", SCORES_CAPTION, content=tables)]
    if comparison.overall:
        drawn = {}
        if any(each.improvement is not None for each in comparison.overall):
            drawn = {"improvement": comparison_figures.improvement_figure(comparison)}
        sections.append(Section("All tasks", OVERALL_CAPTION, drawn, table(*overall_table(comparison))))
        profile = {"profile": comparison_figures.profile_figure(comparison)}
        sections.append(Section("Performance profiles", PROFILE_CAPTION, profile))
    return sections
