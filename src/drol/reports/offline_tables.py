"""What data alone says of policies: held-out errors, offline evaluations, whether actions leave the data."""

import html
from collections.abc import Sequence

import jax

from drol.errors import InputError
from drol.evaluation.support import HeldOut, hold_out, offline_scores, support_warning
from drol.reports.html.tables import OFFLINE_FIGURES, offline_table, table
from drol.reports.html.template import Section
from drol.reports.selected_runs import Found, Shown
from drol.tasks.base import Task

AUDITED = 24  # policies, at most
HELD_OUT = {
    "single_sample_error": "held-out error of one action",
    "routed_bc_loss": "of the nearest of 16",
    "support_ratio": "distance to the data, over the data's own",
    "outside_support": "share outside the support",
}
HELD_OUT_CAPTION = (
    "No simulator, so the policy is judged by data that it was not trained on: how far its actions are from those "
    "taken there (squared, for each action dimension), and how many are farther from the actions of similar states "
    "than all but 5% of the data's own. `drol evaluate --offline` says more."
)
AUDIT = ("single_sample_error", "routed_bc_loss", "support_ratio", "outside_support")
AUDIT_CAPTION = "The newest policies against held-out states: do they stay where the data has actions? "


def offline_section(shown: Sequence[Shown], found: Found) -> list[Section]:
    """Return the support audit of the newest policies, and the offline evaluations that were made."""
    sections, audited = [], audits(shown, found)
    if audited:
        known = {name: (title, words) for name, title, _, words in OFFLINE_FIGURES}
        titles = ("group", "updates", "seed", *(known[name][0] for name in AUDIT))
        points = "".join(f"<li>{html.escape(': '.join(known[name]))}</li>" for name in AUDIT)
        sections.append(Section("Support", AUDIT_CAPTION, content=f"{table(titles, audited)}<ul>{points}</ul>"))
    evaluated = [(each, rows) for each in shown if (rows := each.run.offline_evaluations)]
    if evaluated:
        unseen = all(row.unseen for _, rows in evaluated for row in rows)
        tested = "held-out data" if unseen else "data that the policy was trained on"
        caption = f"What `drol evaluate --offline` found on {tested}, without playing an episode."
        parts = [(f"<h3>{html.escape(str(each.run.path))}</h3>", offline_table(rows)) for each, rows in evaluated]
        content = "".join((head if len(shown) > 1 else "") + body for head, body in parts)
        sections.append(Section("By data alone", caption, content=content))
    return sections


def audits(shown: Sequence[Shown], found: Found) -> list[tuple]:
    """Return a line for each newest policy on a task that is loaded: group, updates, seed, figures; some at most."""
    lines, states = [], {}
    for each in shown:
        task, run = found.loaded_task(each.run), each.run
        if task is None or not run.steps:
            continue
        if task.name not in states:
            states[task.name] = held_out(task, found)
        for seed in run.config.seeds if states[task.name] is not None else ():
            if len(lines) == AUDITED:
                found.missing.append(
                    f"the support of the first {AUDITED} policies is audited, and not that of the rest"
                )
                return lines
            policy = found.readable(lambda run=run, seed=seed: run.policy(seed=seed))
            if policy is not None:
                figures = offline_scores(policy, states[task.name], jax.random.key(0))
                name = f"step {run.steps[-1]:,}, seed {seed} of {run.path}"
                warning = support_warning(figures["outside_support"], name)
                if warning and task.make_environment is None:
                    found.warnings.append(warning)
                forms = {name: form for name, _, form, _ in OFFLINE_FIGURES}
                lines.append((each.label, f"{run.steps[-1]:,}", seed, *(f"{figures[n]:{forms[n]}}" for n in AUDIT)))
    return lines


def held_out(task: Task, found: Found) -> HeldOut | None:
    """Return the held-out states of a task; where it has none, None, and that is said."""
    try:
        return hold_out(task)
    except InputError as error:
        found.missing.append(f"the support is not audited: {error}")
        return None
