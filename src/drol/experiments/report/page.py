"""The page of a run. A section is left out where the run has nothing for it."""

import html
from collections.abc import Callable, Sequence
from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from drol.algorithms import algorithm_name
from drol.data.trajectories import spread
from drol.errors import InputError
from drol.experiments.report import run_figures as figures
from drol.experiments.report.style import save_figure
from drol.experiments.report.tables import offline_table, score_table, settings_table, what_it_plays
from drol.experiments.report.template import Section, page_html
from drol.runs.rows import EvaluationRow, MetricsRow
from drol.runs.run import Run
from drol.tasks.base import Task

ROUTING = (
    ("diagnostics/routed_bc_loss", "routed BC loss"),
    ("diagnostics/candidate_distance", "candidate pairwise distance"),
    ("diagnostics/candidate_divergence", "centroid divergence"),
)
HELD_OUT = (
    ("single_sample_error", "held-out error of one action"),
    ("routed_bc_loss", "of the nearest of 16"),
    ("outside_support", "share outside the support"),
)
ONLINE = (("return", "return of each episode"), ("length", "steps of each episode"))

MAZE_CAPTION = "Evaluation episodes of the first seed before, during and after training, from the same starts."
HELD_OUT_CAPTION = (
    "No simulator, so the policy is judged by data that it was not trained on: how far its actions are from those "
    "taken there (squared, for each action dimension), and how many are farther from the actions of similar states "
    "than all but 5% of the data's own. `drol evaluate --offline` says more."
)
ONLINE_CAPTION = "Episodes that the policy played while it went on learning from them."
DRAWS_CAPTION = (
    f"The square is every possible action. Green dots are {figures.DRAWS} draws of the policy for one state, grey dots "
    "actions that the data took near it. "
)
CELLS_CAPTION = (
    f"The square is every possible action. Green dots are {figures.DRAWS} candidates of the policy, each in its "
    "Voronoi cell: a data action (grey dots are those taken near this state) trains only the candidate whose cell it "
    "falls in. "
)
PANELS_CAPTION = (
    "Contours are the critic, darker where it is higher. Columns are the numbered places in the maze; rows are before, "
    "during and after training, with the same random numbers."
)
ROUTING_CAPTION = (
    "How far the nearest candidate is from the data action (squared, for each action dimension), how far two "
    "candidates are apart, and how far they are from their centre (squared). Collapsed candidates would show as zero."
)


MISSING_CAPTION = "What this page could not show, because the run's folder does not have it or it is damaged."

Value = TypeVar("Value")


def write_page(run: Run, beside: Run | None = None) -> list[str]:
    """Draw the figures of a run, save them, and write `report.html`; return what is missing.

    What is damaged is added to `run.damage` and named on the page as well.
    """
    recorded, name = run.directory.read_config(), algorithm_name(run.config.algorithm)
    settings = {"algorithm": name, **run.config.algorithm.to_dict()}
    settings |= {key: value for key, value in run.config.to_dict().items() if key != "algorithm"}
    scored = [row for row in run.evaluations if row.score is not None and row.episodes]
    circumstances = recorded.get("circumstances", {})
    fingerprint = recorded.get("dataset_fingerprint", "")[:16] or None
    tables = settings_table(settings), settings_table({**circumstances, "dataset_fingerprint": fingerprint})
    folder = html.escape(str(run.path))
    foot = (
        "<section><details open><summary>Settings and circumstances</summary>"
        f"<div class='pair'>{' '.join(tables)}</div></details></section>\n"
        f"<p>Made from the run folder <code>{folder}</code>; <code>drol report {folder}</code> makes it again.</p>"
    )
    missing: list[str] = []
    damage = run.directory.damage()
    sections = make_sections(run, scored, beside, missing, damage)
    if missing or damage:
        points = "".join(f"<li>{html.escape(words)}</li>" for words in (*damage, *missing))
        sections.append(Section("What is missing", MISSING_CAPTION, content=f"<ul>{points}</ul>"))
    run.damage += [words for words in damage if words not in run.damage]
    save_figures(run, sections)
    page = page_html(f"{name.upper()} on {run.config.task}", headline(run, scored), sections, foot)
    run.directory.write_report(page)
    return missing


def headline(run: Run, scored: Sequence[EvaluationRow]) -> str:
    """Return the mean of the last scores, and the table of scores."""
    if not scored:
        judged = "no simulator: this run was judged by held-out data, not scored"
        words = judged if run.task.make_environment is None else "this run has not been evaluated yet"
        return f"<p class='lead'>{words}</p>"
    last = max(row.step for row in scored)
    scores = [row.score for row in scored if row.step == last and row.score is not None]
    seeds = f", mean of {len(scores)} seeds" if len(scores) > 1 else ""
    words = html.escape(f"{run.task.score_name} after {last:,} updates{seeds}")
    return f"<p class='lead'><b>{np.mean(scores):.1f}</b> {words}</p>{score_table(run, scored)}"


def make_sections(
    run: Run, scored: Sequence[EvaluationRow], beside: Run | None, missing: list[str], damage: list[str]
) -> list[Section]:
    """Return the sections that this run has something for; add what it lacks, and what is damaged, to the lists."""
    metrics, sections = run.metrics, []
    if scored:
        curve = figures.learning_curve(scored, run.task.score_name)
        sections.append(Section("Learning", learning_caption(run, scored), {"learning": curve}))
        sections += maze_section(run, scored, missing, damage)
    held_out = [MetricsRow(row.step, row.seed, row.offline) for row in run.evaluations if row.offline]
    if held_out:
        panels = figures.metric_panels(held_out, HELD_OUT)
        sections.append(Section("On held-out data", HELD_OUT_CAPTION, {"held_out": panels}))
    offline = run.offline_evaluations
    if offline:
        tested = "held-out data" if all(row.unseen for row in offline) else "data that the policy was trained on"
        caption = f"What `drol evaluate --offline` found on {tested}, without playing an episode."
        sections.append(Section("By data alone", caption, content=offline_table(offline)))
    online = [
        MetricsRow(row.step, row.seed, {"return": row.total_reward, "length": row.length})
        for row in run.online_episodes
    ]
    if online:
        sections.append(Section("Fine-tuning", ONLINE_CAPTION, {"online": figures.metric_panels(online, ONLINE)}))
    sections += actions_section(run, routes(metrics), missing, damage)
    if routes(metrics):
        others = beside.metrics if beside else []
        panels = figures.metric_panels(metrics, ROUTING, others)
        caption = ROUTING_CAPTION + (beside_caption(metrics, others, beside) if beside and routes(others) else "")
        sections.append(Section("Routing", caption, {"routing": panels}))
    return sections


def beside_caption(metrics: Sequence[MetricsRow], others: Sequence[MetricsRow], beside: Run) -> str:
    """Return what the dashed curves are, and how far the two runs' winners are from the data."""
    ends = []
    for rows in (metrics, others):
        known = [row for row in rows if ROUTING[0][0] in row.values]
        last = max(row.step for row in known)
        ends.append(np.mean([row.values[ROUTING[0][0]] for row in known if row.step == last]))
    return (
        f" Dashed: the run in `{beside.path.name}`. The nearest candidate ends at {ends[0]:.3f} here and at "
        f"{ends[1]:.3f} there: {ends[0] / ends[1]:.1f} times the squared distance from the data. What is above 1 is "
        "the price of following Q: data that no candidate stays near to."
    )


def learning_caption(run: Run, scored: Sequence[EvaluationRow]) -> str:
    """Return what a point of the curve is, and how the policy acted in it."""
    counts = sorted({len(row.episodes) for row in scored})
    episodes = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    algorithm = run.config.algorithm
    chosen = ", which the critic chose" if algorithm.default_best_of > 1 else ""
    played = f"In each state the policy played {what_it_plays(algorithm)}{chosen}."
    return f"A point is the score of one seed over {episodes} episodes. {played}"


def routes(metrics: Sequence[MetricsRow]) -> bool:
    """Return whether the method routes data to candidates: its diagnostics say how these spread."""
    return any(all(name in row.values for name, _ in ROUTING) for row in metrics)


def maze_section(run: Run, scored: Sequence[EvaluationRow], missing: list[str], damage: list[str]) -> list[Section]:
    """Return the paths of the first seed through the maze, where there is one and paths were saved."""
    if run.task.maze is None:
        return []
    own, panels = {row.step: row for row in scored if row.seed == run.config.seeds[0]}, []
    for step, row in own.items():
        before = len(damage)
        paths = readable(lambda row=row: run.directory.read_trajectories(row.step, row.seed), damage)
        if paths and len(paths) == len(row.episodes):
            panels.append((f"{step:,} updates", paths, [episode.success for episode in row.episodes]))
        elif len(damage) == before and not row.failures:
            missing.append(f"the paths of the evaluation after {step:,} updates are not there to be drawn")
    if not panels:
        return []
    drawn = figures.maze_trajectories(run.task.maze, first_middle_last(panels))
    return [Section("In the maze", MAZE_CAPTION, {"maze": drawn})]


def readable(read: Callable[[], Value], damage: list[str]) -> Value | None:
    """Return what a function reads; where that is refused, None, and the reason is added to a list."""
    try:
        return read()
    except InputError as error:
        damage.append(str(error))
        return None


def actions_section(run: Run, routed: bool, missing: list[str], damage: list[str]) -> list[Section]:
    """Return what the policy of the first seed draws at four places of a maze, where actions are drawn and flat."""
    task, algorithm, steps = run.task, run.config.algorithm, run.steps
    if task.maze is None or task.train.spec.action_size != 2 or not algorithm.draws_actions:
        return []
    seed = run.config.seeds[0]
    loaded = {
        step: readable(lambda step=step: run.policy(step, seed), damage)
        for step in (steps and first_middle_last(steps))
    }
    policies = [(f"{step:,} updates", policy) for step, policy in loaded.items() if policy is not None]
    if not policies:
        missing.append("no saved policy can be read, so its actions are not drawn")
        return []
    states = states_on_the_way(readable(lambda: run.directory.read_trajectories(steps[-1], seed), []), task)
    titles = [str(number) for number in range(1, len(states) + 1)]
    drawn = {
        "states": figures.states_map(task.maze, states, titles),
        "cells" if routed else "draws": figures.drawn_actions(task, policies, states, titles, cells=routed),
    }
    if routed:
        return [Section("Candidates and their cells", CELLS_CAPTION + PANELS_CAPTION, drawn)]
    return [Section("Actions of the policy", DRAWS_CAPTION + PANELS_CAPTION, drawn)]


def states_on_the_way(paths: list[np.ndarray] | None, task: Task) -> list[np.ndarray]:
    """Return four states that the policy passes: on the episode of median length, evenly spread; else of the data."""
    if paths and task.train.spec.observation_size == 2:
        path = sorted(paths, key=len)[len(paths) // 2]
        return [path[int(share * (len(path) - 1))] for share in (0.02, 0.3, 0.6, 0.88)]
    return [*np.asarray(task.train.take(jnp.asarray(spread(task.train.size, 4))).observation)]


def first_middle_last(items: Sequence) -> list:
    """Return at most three of some items, in their order."""
    return [items[index] for index in sorted({0, len(items) // 2, len(items) - 1})]


def save_figures(run: Run, sections: Sequence[Section]) -> None:
    """Save the figures of all sections as PNG files."""
    run.directory.figures.mkdir(exist_ok=True)
    for section in sections:
        for name, figure in section.figures.items():
            save_figure(figure, run.directory.figures / f"{name}.png")
