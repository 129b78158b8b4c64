"""Report sections without a simulator: held-out errors, offline evaluations, support audit."""

import html
from collections.abc import Sequence

import jax

from drol.errors import InputError
from drol.evaluation.support import HeldOut, hold_out, offline_scores, support_warning
from drol.reports.html.tables import OFFLINE_FIGURES, offline_table, table
from drol.reports.html.template import Section
from drol.reports.selected_runs import Found, Shown
from drol.tasks.base import Task

AUDITED = 24  # most policies
HELD_OUT = {
    "single_sample_error": "held-out error of one action",
    "routed_bc_loss": "of the nearest of 16",
    "support_ratio": "distance to the data, over the data's own",
    "outside_support": "share outside the support",
}
HELD_OUT_CAPTION = (
    "Without a simulator, the policy is evaluated on held-out data: the squared distance of its actions to the "
    "held-out actions (per action dimension), and the share of its actions outside the support, that is farther from "
    "the actions of similar states than 95% of held-out actions. `drol evaluate --offline` prints more."
)
AUDIT = ("single_sample_error", "routed_bc_loss", "support_ratio", "outside_support")
AUDIT_CAPTION = "The newest policies in held-out states: do they stay inside the support of the data? "


def offline_section(shown: Sequence[Shown], found: Found) -> list[Section]:
    """Return the support audit of the newest policies, and the existing offline evaluations."""
    sections, audited = [], audits(shown, found)
    if audited:
        known = {name: (title, words) for name, title, _, words in OFFLINE_FIGURES}
        titles = ("group", "updates", "seed", *(known[name][0] for name in AUDIT))
        points = "".join(f"<li>{html.escape(': '.join(known[name]))}</li>" for name in AUDIT)
        sections.append(Section("Support", AUDIT_CAPTION, content=f"{table(titles, audited)}<ul>{points}</ul>"))
    evaluated = [(each, rows) for each in shown if (rows := each.run.offline_evaluations)]
    if evaluated:
        unseen = all(row.unseen for _, rows in evaluated for row in rows)
        tested = "held-out data" if unseen else "the training data"
        caption = f"Evaluations by `drol evaluate --offline` on {tested}."
        parts = [(f"<h3>{html.escape(str(each.run.path))}</h3>", offline_table(rows)) for each, rows in evaluated]
        content = "".join((head if len(shown) > 1 else "") + body for head, body in parts)
        sections.append(Section("Offline evaluation", caption, content=content))
    return sections


def audits(shown: Sequence[Shown], found: Found) -> list[tuple]:
    """Return a line for each newest policy on a loaded task: group, updates, seed, metrics; at most `AUDITED`."""
    lines, states = [], {}
    for each in shown:
        task, run = found.loaded_task(each.run), each.run
        if task is None or not run.steps:
            continue
        if task.name not in states:
            states[task.name] = held_out(task, found)
        for seed in run.config.seeds if states[task.name] is not None else ():
            if len(lines) == AUDITED:
                found.missing.append(f"only the first {AUDITED} policies have a support audit")
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
    """Return the held-out states of a task; if it has none, record that in `found` and return None."""
    try:
        return hold_out(task)
    except InputError as error:
        found.missing.append(f"no support audit: {error}")
        return None
