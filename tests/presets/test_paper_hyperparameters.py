"""The settings row by row against the tables that they were copied from, which are in `fixtures`."""

import csv

from toys import TESTS

from drol.algorithms import find_algorithm
from drol.presets.settings import METHODS, TASKS, task_settings


def read(name):
    with (TESTS / "presets" / "fixtures" / name).open() as file:
        return list(csv.DictReader(file))


def belongs(task, row_name, benchmark):
    """Whether a task belongs to the family or task that a file's row names."""
    stem = task.split("-singletask")[0] if benchmark == "OGBench" else task
    return ("singletask" in task) == (benchmark == "OGBench") and (
        stem in (row_name, f"{row_name}-v1", f"{row_name}-v2", f"{row_name}-navigate", f"{row_name}-play")
        or (row_name in ("door", "hammer", "relocate") and stem.startswith(f"{row_name}-"))
    )


def test_drol_agrees_with_the_printed_table():
    seen = []
    for row in read("drol_hyperparameters.csv"):
        for task in (task for task in TASKS if belongs(task, row["family"], row["benchmark"])):
            seen.append(task)
            for preset, column in (("paper", "K16"), ("paper-tuned", "Kstar")):
                assert task_settings(task, "drol", preset).hyperparameters == {
                    "bc_weight": float(row["alpha"]),
                    "num_candidates": int(row[column]),
                    "discount": float(row["discount"]),
                    "q_aggregation": row["q_agg"],
                }
    assert sorted(seen) == sorted(TASKS)


def test_drol_agrees_with_the_official_commands():
    seen = []
    for row in read("drol_hyperparameters_official_commands.csv"):
        for task in (task for task in TASKS if belongs(task, row["family_or_task"], row["benchmark"])):
            seen.append(task)
            for preset, kind in (("released", "16"), ("released-tuned", "star")):
                assert task_settings(task, "drol", preset).hyperparameters == {
                    "bc_weight": float(row[f"bc_coef_{kind}"]),
                    "num_candidates": int(row[f"K{kind}"]),
                    "discount": float(row["discount"]),
                    "q_aggregation": row["q_agg"],
                }
    assert sorted(seen) == sorted(TASKS)


OUR_NAMES = {
    "beta": "alpha",
    "iql_tau": "expectile",
    "gamma": "discount",
    "q_agg": "q_aggregation",
    "alpha_actor": "actor_bc_weight",
    "alpha_critic": "critic_bc_weight",
    "actor_bc_coef": "actor_bc_weight",
    "critic_bc_coef": "critic_bc_weight",
    "q_loss_coef": "q_weight",
    "normalize_q_loss": "normalise_q",
    "hidden": "hidden_sizes",
    "actor_learning_rate": "learning_rate",
}
# How CORL runs, which is not how we run; the notes of its columns say so.
CORL_ONLY = ("normalize_states", "reward_shift", "reward_scale", "n_episodes", "eval_episodes", "critic_learning_rate")


def read_value(text):
    if text in ("mean", "min"):
        return text
    if "x" in text:
        width, layers = text.split("x")
        return (int(width),) * int(layers)
    return text == "true" if text in ("true", "false") else float(text)


def baseline_rows():
    """Return a row for each task; a row of the file lists all its datasets, on OGBench with five tasks each."""
    for row in read("baseline_hyperparameters.csv"):
        for data in row["data"].split():
            tasks = [task for task in TASKS if task == data or task.startswith(f"{data}-singletask-")]
            assert len(tasks) in (1, 5), data
            for task in tasks:
                yield row | {"task": task}


def test_baselines_agree_with_the_tables_row_by_row():
    """Each stated value equals the algorithm's value; each of our tuned values is in the file."""
    stated = {}
    for row in baseline_rows():
        corl = row["source"].startswith("CORL")
        if row["parameter"] in CORL_ONLY or (corl and row["parameter"] == "steps"):
            assert corl
            continue
        algorithm, name = row["method"].lower(), OUR_NAMES.get(row["parameter"], row["parameter"])
        settings = task_settings(row["task"], algorithm)
        stated.setdefault((row["task"], algorithm), set()).add(name)
        if name == "steps":
            assert settings.run["steps"] == int(row["value"]), row
        elif not row["value"]:
            assert name in settings.unknown, row
        else:
            built = find_algorithm(algorithm)(**settings.hyperparameters)
            assert getattr(built, name) == read_value(row["value"]), row
            assert (name in settings.doubtful) == row["confidence"].startswith("doubtful"), row
    # Left open by the sources and chosen by us with a note, or a fact of the code and not of a table.
    decided = {"hidden_sizes": "ifql", "act_steps": "sorl", "mask_next_action": "rebrac"}
    for task in TASKS:
        for algorithm in METHODS[1:]:
            for name in task_settings(task, algorithm).hyperparameters:
                assert name in stated[task, algorithm] or decided.get(name) == algorithm, (task, algorithm, name)
