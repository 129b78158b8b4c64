"""Write the page of a dataset: episodes, marginals, coverage, what moves what, returns, what is strange."""

import html
from pathlib import Path

from drol.data.importing.relations import notes_on_actions, relate
from drol.data.trajectories import spread
from drol.reports import dataset_figures
from drol.reports.dataset_episodes import find_strange, look_at
from drol.reports.html.tables import settings_table, table
from drol.reports.html.template import Section, page_html
from drol.reports.task_data_figures import describe
from drol.storage import write_whole
from drol.tasks.base import Task

EPISODES_CAPTION = (
    "Episodes from the first to the last, each with its number and return. Lines are the numbers that change most, in "
    "deviations from their mean over all data; actions are as the networks see them, in [-1, 1]."
)
MARGINALS_CAPTION = "How often each number has each value. A number that never changes is red."
COVERAGE_CAPTION = "Where the observations are, darker where more of them are."
RELATIONS_CAPTION = (
    "The correlation of each action with how each observation changes. An action should go with what it moves, in its "
    "own step: a peak at another delay means that commands take effect later, or that rows are shifted; actions that "
    "move observations in another order than their own may be joints in another order."
)
RETURNS_CAPTION = "The sum of rewards and the number of transitions of each episode."
STRANGE_CAPTION = (
    "Episodes least like the others, by the trait that is farthest from the middle of all, in robust deviations (the "
    "median distance from the median is 0.67 of one). Strange is not wrong; look before you leave one out."
)


def write_data_page(task: Task, path: Path) -> list[str]:
    """Write a page of a task's data that needs no other file; return what it says in words."""
    looked = look_at(task)
    strange = find_strange(looked)
    places = spread(len(looked.chosen), 3 if looked.has_images else dataset_figures.EPISODES)
    relations = None if looked.has_images else relate(looked.observation, looked.action, looked.last)
    named = {"observation": task.observation_dimensions, "action": task.action_dimensions}
    notes = notes_on_actions(relations, named)
    sections = []
    if looked.has_images:
        drawn = {"images": dataset_figures.image_figure(looked, places)}
    else:
        drawn = {"observations": dataset_figures.episode_figure(looked, "observation", places)}
    drawn["actions"] = dataset_figures.episode_figure(looked, "action", places)
    sections.append(Section("Episodes", EPISODES_CAPTION, drawn))
    marginals = (
        {} if looked.has_images else {"observation-values": dataset_figures.marginal_figure(looked, "observation")}
    )
    marginals["action-values"] = dataset_figures.marginal_figure(looked, "action")
    sections.append(Section("Marginals", MARGINALS_CAPTION, marginals))
    if not looked.has_images:
        plane, share = dataset_figures.plane_of(looked)
        coverage = dataset_figures.coverage_figure(looked, plane)
        where = "in the maze" if task.maze else f"in the plane of two directions that holds {share:.0%} of the variance"
        sections.append(Section("Coverage", f"{COVERAGE_CAPTION[:-1]}: {where}.", {"coverage": coverage}))
    if relations is not None:
        words = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        content = f"<ul>{words}</ul>" if notes else ""
        drawn = {"relations": dataset_figures.relation_figure(looked, relations)}
        sections.append(Section("What actions move", RELATIONS_CAPTION, drawn, content))
    sections.append(Section("Returns", RETURNS_CAPTION, {"returns": dataset_figures.return_figure(looked)}))
    rows = [
        [str(each.episode), f"{each.length:,}", f"{each.total:.4g}", f"{each.score:.1f}", each.why] for each in strange
    ]
    content = table(["episode", "length", "return", "deviations", "why"], rows) if rows else "<p>None stands out.</p>"
    drawn = {}
    if strange and not looked.has_images:
        drawn = {
            "strange": dataset_figures.episode_figure(
                looked, "observation", dataset_figures.strange_places(looked, strange)
            )
        }
    sections.append(Section("Strangest episodes", STRANGE_CAPTION, drawn, content))
    looked_at = len(looked.chosen)
    note = f"Observations of {looked_at:,} of {len(looked.trajectories.first):,} episodes are looked at, evenly spread."
    headline = settings_table(describe(task)) + f"<p>{note}</p>"
    foot = "<p>Made by <code>drol data show</code>; docs/data.md says how to read it.</p>"
    write_whole(path, page_html(f"Data of {task.name}", headline, sections, foot))
    return notes + [f"episode {each.episode}: {each.why}" for each in strange]
