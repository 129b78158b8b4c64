"""The page of one or more runs. Sections without content are omitted."""

import html
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drol.errors import InputError
from drol.planning.command import train_command
from drol.progress import Report
from drol.reports.chart_places import SCRIPTS, Page
from drol.reports.comparison_page import comparison_sections, headline_of, title_of
from drol.reports.drawn_actions import actions_players
from drol.reports.episode_paths import film_player, maze_players, record_videos
from drol.reports.html.tables import settings_table, table
from drol.reports.html.template import Section, asset, page_html
from drol.reports.learning_curves import Values, learning_charts, legend_of, metric_charts, metric_values
from drol.reports.metric_meanings import meaning_of
from drol.reports.offline_tables import HELD_OUT, HELD_OUT_CAPTION, offline_section
from drol.reports.selected_runs import Found, Shown, first_of_each_group, label_runs
from drol.reports.single_run import beside_chart, beside_words, headline, played_words
from drol.results.collect import results_of
from drol.results.compare import Comparison, compare_results
from drol.results.result import Results
from drol.runs.config import differences
from drol.runs.config_file import CONFIG
from drol.runs.records import MetricsRow
from drol.runs.run import Run
from drol.storage import write_whole

NOT_COMPARED = "the scores are not compared"
CURVES_CAPTION = (
    "The mean score over seeds at every evaluation; the band is its 95% bootstrap interval over seeds and, for success "
    "rates, at least as wide as Wilson's over all episodes. Thin lines are single seeds."
)
MAZE_CAPTION = "Evaluation episodes of the first seed, from the same starts after every evaluation."
FILM_CAPTION = "Episodes of the newest recorded policy (`drol report --video` or `drol evaluate --video`)."
ACTIONS_CAPTION = (
    "Large dots are actions drawn by the policy in one state, with the same random numbers throughout training; small "
    "dots are actions of the data near that state. Lines are the critic, stronger where it is higher. "
)
CELLS_CAPTION = (
    "In methods with routing, each drawn action is a candidate with its Voronoi cell: a data action trains only the "
    "candidate of its cell, and has the colour of that candidate. "
)
OWNERS_CAPTION = (
    "In methods with routing, each drawn action is a candidate: a data action trains only its nearest candidate, and "
    "has the colour of that candidate. "
)
METRICS_CAPTION = (
    "Every logged metric: means over the updates since the previous row, and diagnostics of the last update. The "
    "band of a mean is the range over seeds."
)
ONLINE = {"return": "return of each episode", "length": "steps of each episode"}
ONLINE_CAPTION = "Episodes of online training."
SETTINGS_CAPTION = "A line for each run, with the settings that differ between runs."
COMMANDS_CAPTION = "The command that repeats each run, based on the preset nearest to its settings."
MISSING_CAPTION = "Parts that are missing or damaged, so that this page does not show them."
PARTS = ("loading the data", "comparing scores", "episodes and actions", "metrics and figures", "written")
COMMANDS, OPEN = 50, 3  # most commands on the page, and those visible without a click
LEADS = 3  # tasks whose best group is in the headline


logger = logging.getLogger(__name__)


def write_report(
    runs: Sequence[Run],
    path: Path,
    beside: Run | None = None,
    videos: int = 0,
    skipped: Sequence[str] = (),
    report: Report | None = None,
) -> None:
    """Write the page of runs; log missing or damaged parts. Damage sets `damaged` of the first run.

    Args:
        runs: The runs.
        path: The page.
        beside: Another run whose metrics are drawn dashed.
        videos: Episodes to record for the first run of each group.
        skipped: Messages about runs that could not be opened.
        report: Called as `report(done, total, what)` before each part of the page.
    """

    def tell(number: int) -> None:
        if report:
            report(number, len(PARTS) - 1, PARTS[number])

    tell(0)
    found, shown, page = Found(damage=list(skipped)), label_runs(runs), Page()
    for run in runs:
        found.damage.extend(run.directory.bad_lines())
    drawn = first_of_each_group(shown, found)
    for each in drawn:
        found.task_of(each.run)
    tell(1)
    comparison = compared(runs, found)
    labels = list(dict.fromkeys(each.label for each in shown))
    labels += [label for label in (comparison.labels if comparison else []) if label not in labels]
    seeds = sorted({seed for run in runs for seed in run.config.seeds})
    if videos:
        record_videos(drawn, videos, found)
    sections = score_sections(comparison, labels, seeds, runs, page)
    tell(2)
    sections += drawn_sections(drawn, labels, found, page)
    tell(3)
    sections += metric_sections(shown, labels, seeds, beside, page)
    sections += offline_section(shown, found)
    sections += [settings_section(runs), command_section(runs)]
    runs[0].damaged |= bool(found.damage)
    for words in found.damage:
        logger.warning(words)
    for words in found.missing:
        logger.info(words)
    if found.missing or found.damage:
        points = "".join(f"<li>{html.escape(words)}</li>" for words in (*found.damage, *found.missing))
        sections.append(Section("Missing parts", MISSING_CAPTION, content=f"<ul>{points}</ul>"))
    if len(runs) == 1:
        title, lead = f"{labels[0].split()[0].upper()} on {runs[0].config.task}", headline(runs[0], comparison, found)
    elif comparison is not None and len(comparison.labels) > 1:
        title, lead = title_of(comparison), highest_of(comparison) + headline_of(comparison)
    else:
        title = f"{len(runs)} runs of {', '.join(labels)}"
        lead = headline_of(comparison) if comparison else f"<p>{unscored_words(runs, found)}</p>"
    lead += "".join(f"<p><b>Warning:</b> {html.escape(words)}.</p>" for words in found.warnings)
    made = " ".join(html.escape(str(run.path)) for run in runs[:COMMANDS])
    foot = f"<p>Generated by <code>drol report {made}</code>.</p>"
    data = {"groups": legend_of(labels, seeds), "charts": page.charts, "players": page.players}
    scripts = [asset(*each) for each in SCRIPTS]
    if is_page_of_others(path, foot):
        logger.warning(f"{path} was the page of other runs and is replaced; --out FILE writes to another file")
    write_whole(path, page_html(title[:300], lead, [each for each in sections if each], foot, scripts, data))
    tell(4)
    for words in found.warnings:
        logger.warning(words)


def is_page_of_others(path: Path, foot: str) -> bool:
    """Return whether a file is a page of other runs; the page in the folder of a run is always its own."""
    if (path.parent / CONFIG).is_file() or not path.is_file():
        return False
    text = path.read_text(errors="replace")
    return "Generated by <code>drol report" in text and foot not in text


def unscored_words(runs: Sequence[Run], found: Found) -> str:
    """Explain why several runs have no scores."""
    tasks = [found.loaded_task(run) for run in runs]
    if all(task is not None and task.make_environment is None for task in tasks):
        return "No simulator: these runs were evaluated on held-out data. See `drol compare` and `drol choose`."
    refused = [words for words in found.missing if words.startswith(NOT_COMPARED)]
    if refused:
        return html.escape(f"T{refused[0][1:]}.")
    return "These runs have not been evaluated yet."


def highest_of(comparison: Comparison) -> str:
    """Return the group with the highest mean score on each of the first tasks."""
    lines = []
    for task in comparison.tasks[:LEADS]:
        groups = [group for group in comparison.groups if group.task == task]
        best = max(groups, key=lambda group: group.scores.mean())
        words = f"{best.score_name} of {best.label}, the highest mean of {len(groups)} groups"
        on_task = f" on {task}" if len(comparison.tasks) > 1 else ""
        lines.append(f"<p class='lead'><b>{best.scores.mean():.1f}</b> {html.escape(words + on_task)}</p>")
    return "".join(lines)


def compared(runs: Sequence[Run], found: Found) -> Comparison | None:
    """Return the comparison of the runs; None without scores, or if the scores are not comparable."""
    results = Results()
    for run in runs:
        own, task = found.readable(lambda run=run: results_of(run)) or Results(), found.loaded_task(run)
        found.damage.extend(own.skipped)
        results += [replace(each, score_name=task.score_name) for each in own] if task is not None else own
    results = Results(each for each in results if each.score == each.score)
    if not any(each.evaluation == "training" for each in results):
        return None
    try:
        return compare_results(results)
    except InputError as error:
        found.missing.append(f"{NOT_COMPARED}: {error}")
        return None


def score_sections(
    comparison: Comparison | None, labels: Sequence[str], seeds: Sequence[int], runs: Sequence[Run], page: Page
) -> list[Section]:
    """Return the learning curves and, for several groups, the comparison."""
    if comparison is None:
        return []
    charts = page.chart_html(learning_charts(comparison.groups, labels, seeds), "large")
    caption = CURVES_CAPTION + (f" {played_words(runs[0])}" if len(runs) == 1 else "")
    curves = Section("Learning", caption, content=charts)
    return [curves, *(comparison_sections(comparison) if len(runs) > 1 else [])]


def drawn_sections(drawn: Sequence[Shown], labels: Sequence[str], found: Found, page: Page) -> list[Section]:
    """Return episodes and actions of the first run of each group."""
    sections = []
    mazes = maze_players(drawn, labels, found)
    if mazes:
        content = "".join(page.player_html(each, each["task"] if len(mazes) > 1 else "") for each in mazes)
        sections.append(Section("In the maze", MAZE_CAPTION, content=content))
    film = film_player(drawn, labels, found)
    if film:
        sections.append(Section("Films", FILM_CAPTION, content=page.player_html(film)))
    players = actions_players(drawn, labels, found)
    if players:
        drawn_runs = [run for each in players for run in each["runs"]]
        title, caption = "Actions of the policy", ACTIONS_CAPTION
        if any(run["cells"] for run in drawn_runs):
            title, caption = "Candidates and their cells", ACTIONS_CAPTION + CELLS_CAPTION
        elif any(run.get("owners") for run in drawn_runs):
            title, caption = "Candidates and the data they own", ACTIONS_CAPTION + OWNERS_CAPTION
        content = "".join(page.player_html(each, each["task"] if len(players) > 1 else "") for each in players)
        sections.append(Section(title, caption, content=content))
    return sections


def metric_sections(
    shown: Sequence[Shown], labels: Sequence[str], seeds: Sequence[int], beside: Run | None, page: Page
) -> list[Section]:
    """Return the metrics of training and of held-out data, and the episodes of online training."""
    sections = []
    held_out, online, logged = ([] for _ in range(3))
    for label in dict.fromkeys(each.label for each in shown):
        own = [each.run for each in shown if each.label == label]
        evaluations = [row for run in own for row in run.evaluations]
        held_out.append((label, values_of([MetricsRow(row.step, row.seed, row.offline or {}) for row in evaluations])))
        played = [row for run in own for row in run.online_episodes]
        rows = [MetricsRow(row.step, row.seed, {"return": row.total_reward, "length": row.length}) for row in played]
        online.append((label, values_of(rows)))
        checked = [
            MetricsRow(
                row.step, row.seed, {f"validation/{name}": value for name, value in (row.validation or {}).items()}
            )
            for row in evaluations
        ]
        logged.append((label, values_of([*(row for run in own for row in run.metrics), *checked])))
    for title, caption, groups, titles in (
        ("On held-out data", HELD_OUT_CAPTION, held_out, HELD_OUT),
        ("Fine-tuning", ONLINE_CAPTION, online, ONLINE),
    ):
        charts = metric_charts(groups, labels, seeds, titles)
        if charts:
            sections.append(Section(title, caption, content=page.chart_html(charts)))
    charts = metric_charts(logged, labels, seeds)
    if charts:
        others = metric_values(beside.metrics) if beside else {}
        charts = [beside_chart(chart, others, beside) if beside else chart for chart in charts]
        caption = METRICS_CAPTION + (beside_words(shown[0].run, beside) if beside else "")
        search = (
            "<p><input type='search' id='metric-filter' placeholder='find a metric' aria-label='find a metric'></p>"
        )
        words = {chart["name"]: meaning_of(chart["name"]) for chart in charts}
        sections.append(Section("Metrics", caption, content=search + page.chart_html(charts, words=words)))
    return sections


def values_of(rows: Sequence[MetricsRow]) -> Mapping[str, Values]:
    return metric_values(rows)


def settings_section(runs: Sequence[Run]) -> Section:
    """Return the settings that differ between runs, and all settings and the environment of the first run."""
    recorded = runs[0].directory.read_config()
    own = flat_settings(runs[0])
    fingerprint = {"dataset_fingerprint": recorded.get("dataset_fingerprint", "")[:16] or None}
    tables = settings_table(own), settings_table({**recorded.get("circumstances", {}), **fingerprint})
    title = "Settings and environment" if len(runs) == 1 else f"All settings of {runs[0].path.name}"
    whole = (
        f"<details{' open' if len(runs) == 1 else ''}><summary>{html.escape(title)}</summary>"
        f"<div class='pair'>{' '.join(tables)}</div></details>"
    )
    if len(runs) == 1:
        return Section("Settings", "", content=whole)
    settings = [flat_settings(run) for run in runs]
    names = list(dict.fromkeys(each.path[-1] for other in settings[1:] for each in differences(settings[0], other)))
    lines = [
        (run.path, *(shown_value(own.get(name)) for name in names)) for run, own in zip(runs, settings, strict=True)
    ]
    return Section("Settings", SETTINGS_CAPTION, content=f"{table(('run', *names), lines)}{whole}")


def flat_settings(run: Run) -> dict[str, Any]:
    """Return the settings of a run and the hyperparameters of its algorithm by name."""
    values = run.config.to_dict()
    algorithm = values.pop("algorithm")
    return {"algorithm": algorithm.pop("name"), **algorithm, **values}


def shown_value(value: Any) -> str:
    return "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)


def command_section(runs: Sequence[Run]) -> Section:
    """Return the command that repeats each run."""
    commands = [
        f"<pre class='command'><code>{html.escape(train_command(run.config, run.path))}</code></pre>"
        for run in runs[:COMMANDS]
    ]
    rest = f"<details><summary>{len(commands) - OPEN} more</summary>{''.join(commands[OPEN:])}</details>"
    unshown = f"<p>and {len(runs) - COMMANDS:,} others</p>" if len(runs) > COMMANDS else ""
    content = "".join(commands[:OPEN]) + (rest if len(commands) > OPEN else "") + unshown
    return Section("Commands", COMMANDS_CAPTION, content=content)
