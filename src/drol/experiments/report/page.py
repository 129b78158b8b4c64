"""A run as one self-contained page: its score, its curves, what its policy does."""

import html
import io
import math
import string
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drol.checkpoints import saved_steps, step_name
from drol.experiments.report import run_figures as figures
from drol.policy import Policy
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Task

ROUTING = (
    ("diagnostics/routed_bc_loss", "routed BC loss"),
    ("diagnostics/candidate_distance", "candidate pairwise distance"),
    ("diagnostics/candidate_divergence", "centroid divergence"),
)

OFFLINE = (
    ("single_sample_error", "held-out error of one action"),
    ("routed_bc_loss", "of the nearest of 16"),
    ("outside_support", "share outside the support"),
)
ONLINE = (("return", "return of each episode"), ("length", "steps of each episode"))


def write_report(directory: RunDirectory) -> Path:
    """Draw the figures of a run and write `report.html`."""
    config = directory.read_config()
    run = config["run"]
    task = load_task(run["task"], Path(run["dataset"]) if run["dataset"] else None)
    metrics, judged = directory.read_metrics(), directory.read_evaluations()
    evaluations = [row for row in judged if "score" in row]
    offline = [{"step": row["step"], "seed": row["seed"], **row["offline"]} for row in judged if "offline" in row]
    sections = []
    if evaluations:
        sections.append(
            ("Learning", CURVE_CAPTION, [("learning", figures.learning_curve(evaluations, task.score_name))])
        )
        if task.maze:
            sections.append(("In the maze", MAZE_CAPTION, [("maze", maze_figure(directory, task, evaluations))]))
    if offline:
        sections.append(("On held-out data", OFFLINE_CAPTION, [("offline", figures.metric_panels(offline, OFFLINE))]))
    online = directory.read_online_episodes()
    if online:
        sections.append(("Fine-tuning", ONLINE_CAPTION, [("online", figures.metric_panels(online, ONLINE))]))
    if task.maze and task.train.spec.action_size == 2 and evaluations:
        sections.append(("Candidates and their cells", CELLS_CAPTION, cell_figures(directory, task, run["seeds"][0])))
    panels = [panel for panel in ROUTING if metrics and panel[0] in metrics[0]]
    if panels:
        sections.append(("Routing", ROUTING_CAPTION, [("routing", figures.metric_panels(metrics, panels))]))
    template = string.Template(resources.files("drol.experiments.report").joinpath("page.html").read_text())
    page = template.substitute(
        title=html.escape(f"{run['algorithm']['name'].upper()} on {run['task']}"),
        headline=headline(evaluations, directory.read_extra_evaluations(), task),
        sections="\n".join(render_section(directory, *section) for section in sections),
        settings=table({**run["algorithm"], **{name: value for name, value in run.items() if name != "algorithm"}}),
        circumstances=table({**config["circumstances"], "dataset fingerprint": config["dataset_fingerprint"][:16]}),
        folder=html.escape(str(directory.path)),
    )
    directory.write_file(directory.report.name, page)
    return directory.report


CURVE_CAPTION = "One latent, one pass for each action: the policy as the paper tests it. A point is one evaluation."
MAZE_CAPTION = "Evaluation episodes of the first seed before, during and after training, from the same starts."
OFFLINE_CAPTION = (
    "No simulator, so the policy is judged by data that it was not trained on: how far its actions are from those "
    "taken there (squared, for each action dimension), and how many are farther from the actions of similar states "
    "than all but 5% of the data's own. `drol evaluate --offline` says more."
)
ONLINE_CAPTION = "Episodes that the policy played while it went on learning from them."
CELLS_CAPTION = (
    "The square is every possible action. Green dots are 16 candidates of the policy, each in its Voronoi cell: a "
    "data action (grey dots are those taken near this state) trains only the candidate whose cell it falls in. "
    "Contours are the critic, darker where it is higher. Columns are the numbered places in the maze; rows are before, "
    "during and after training, with the same latents."
)
ROUTING_CAPTION = (
    "How far the nearest candidate is from the data action (squared, for each action dimension), how far two "
    "candidates are apart, and how far they are from their centre (squared). Collapsed candidates would show as zero."
)


def headline(evaluations: list[dict[str, Any]], extra: list[dict[str, Any]], task: Task) -> str:
    """The last score of each seed, with what its number of episodes leaves open."""
    if not evaluations:
        return "<p class='lead'>no simulator: this run was judged by held-out data, not scored</p>"
    last = max(row["step"] for row in evaluations)
    rows = [("one pass", row) for row in evaluations if row["step"] == last]
    rows += [(f"best of {row['best_of']}", row) for row in extra if row["step"] == last]
    scores = [row["score"] for way, row in rows if way == "one pass"]
    mean = f"<b>{sum(scores) / len(scores):.1f}</b> {html.escape(task.score_name)} after {last:,} updates"
    cells = []
    for way, row in rows:
        count = len(row["episodes"])
        low, high = wilson_interval(sum(episode["success"] for episode in row["episodes"]), count)
        cells.append(
            f"<tr><td>{way}</td><td>{row['seed']}</td><td><b>{row['score']:.1f}</b></td>"
            f"<td>{100 * low:.0f} to {100 * high:.0f}</td><td>{count}</td>"
            f"<td>{np.median([episode['length'] for episode in row['episodes']]):.0f}</td></tr>"
        )
    titles = ("policy", "seed", "score", "95% interval of success", "episodes", "median length")
    head = "".join(f"<th>{title}</th>" for title in titles)
    scores_table = f"<table class='scores'><tr>{head}</tr>{''.join(cells)}</table>"
    return f"<p class='lead'>{mean}</p><div class='wide'>{scores_table}</div>"


def wilson_interval(successes: int, count: int, z: float = 1.959964) -> tuple[float, float]:
    """The range of success probabilities that `successes` of `count` episodes do not contradict at 95%."""
    share = successes / count
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def maze_figure(directory: RunDirectory, task: Task, evaluations: list[dict[str, Any]]) -> Figure:
    assert task.maze is not None
    seed = evaluations[0]["seed"]
    panels = []
    for step in first_middle_last(sorted({row["step"] for row in evaluations})):
        row = next(row for row in evaluations if (row["step"], row["seed"]) == (step, seed))
        paths = directory.read_trajectories(step, seed)
        if paths:
            panels.append((f"{step:,} updates", paths, [episode["success"] for episode in row["episodes"]]))
    return figures.maze_trajectories(task.maze, panels)


def cell_figures(directory: RunDirectory, task: Task, seed: int) -> list[tuple[str, Figure]]:
    assert task.maze is not None
    steps = saved_steps(directory.policies)
    policies = [
        (f"{step:,} updates", Policy.load(directory.policies / step_name(step), seed))
        for step in first_middle_last(steps)
    ]
    states = states_on_the_way(directory.read_trajectories(steps[-1], seed), task)
    titles = [str(number) for number in range(1, len(states) + 1)]
    return [
        ("states", figures.states_map(task.maze, states, titles)),
        ("cells", figures.candidate_cells(task, policies, states, titles)),
    ]


def states_on_the_way(paths: list[np.ndarray] | None, task: Task) -> list[np.ndarray]:
    """Four states that the policy passes: on the episode of median length, evenly spread; else of the data."""
    if paths and task.train.spec.observation_size == 2:
        path = sorted(paths, key=len)[len(paths) // 2]
        return [path[int(share * (len(path) - 1))] for share in (0.02, 0.3, 0.6, 0.88)]
    rows = np.linspace(0, task.train.size - 1, 4).astype(int)
    return [np.asarray(task.train.observation[int(row)]) for row in rows]


def first_middle_last(steps: Sequence[int]) -> list[int]:
    return sorted({steps[0], steps[len(steps) // 2], steps[-1]})


def render_section(directory: RunDirectory, title: str, caption: str, drawn: list[tuple[str, Figure]]) -> str:
    """A section with its figures, which are also saved as PNG files."""
    images = []
    directory.figures.mkdir(exist_ok=True)
    for name, figure in drawn:
        figure.savefig(directory.figures / f"{name}.png", dpi=160)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        images.append(f"<figure class='{name}'>{text[text.index('<svg') :]}</figure>")
    text = f"<h2>{html.escape(title)}</h2><p>{html.escape(caption)}</p>"
    return f"<section>{text}<div class='figures'>{''.join(images)}</div></section>"


def table(values: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        return html.escape(" ".join(map(str, value)) if isinstance(value, list) else str(value))

    rows = (f"<tr><th>{html.escape(str(name))}</th><td>{shown(value)}</td></tr>" for name, value in values.items())
    return f"<table>{''.join(rows)}</table>"
