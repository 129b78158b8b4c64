"""Sweeps as files."""

from pathlib import Path

import pytest

from drol.errors import InputError
from drol.sweeps.search import choices
from drol.sweeps.sweep import Budget, Parameter
from drol.sweeps.sweep_file import read_sweep, write_example
from drol.sweeps.sweep_runs import planned_runs

START = """
name = "mine"
tasks = ["pointmaze-medium-navigate-singletask-task1-v0"]
methods = ["drol", "fql"]
preset = "smoke"
"""


def sweep_of(tmp_path, text, start=START):
    path = tmp_path / "sweep.toml"
    path.write_text(start + text)
    return read_sweep(path)


def test_the_example_is_a_sweep(tmp_path):
    sweep = read_sweep(write_example(tmp_path / "sweep.toml"))
    assert len(planned_runs(sweep)) == 8
    with pytest.raises(InputError, match="exists already"):
        write_example(tmp_path / "sweep.toml")


def test_what_the_example_has_in_comments_is_right_as_well(tmp_path):
    lines = write_example(tmp_path / "sweep.toml").read_text().splitlines()
    kept = [
        line
        for line in lines
        if not line.startswith(("kind", "# kind", "# at", "# keep", "# A ", "# It", "# Add", "# docs"))
    ]
    text = "\n".join(line.removeprefix("# ") for line in kept).replace("[search]", '[search]\nkind = "random"')
    sweep = sweep_of(tmp_path, text, start="")
    assert [each.name for each in sweep.parameters] == [
        "num_candidates", "alpha", "learning_rate", "discount", "target_rate", "batch_size",
    ]  # fmt: skip
    assert (sweep.search.samples, sweep.budget) == (20, Budget(100_000, 1.5))


def test_parameters_are_lists_ranges_and_distributions_with_conditions(tmp_path):
    sweep = sweep_of(
        tmp_path,
        """
        root = "elsewhere"
        [settings]
        hidden_sizes = [8, 8]
        [parameters]
        learning_rate = [1e-4, 3e-4]
        discount = { from = 0.9, to = 0.99, step = 0.03 }
        batch_size = { from = 16, to = 32, step = 8, methods = ["fql"] }
        num_candidates = { distribution = "uniform", from = 1, to = 64, methods = ["drol"] }
        alpha = { distribution = "choice", values = [1, 10], methods = ["fql"] }
        [search]
        kind = "random"
        samples = 3
        """,
    )
    assert (sweep.root, sweep.settings) == (Path("elsewhere"), {"hidden_sizes": (8, 8)})
    assert sweep.parameters == (
        Parameter("learning_rate", (1e-4, 3e-4)),
        Parameter("discount", (0.9, 0.93, 0.96, 0.99)),
        Parameter("batch_size", (16, 24, 32), methods=("fql",)),
        Parameter("num_candidates", (), "uniform", 1, 64, ("drol",)),
        Parameter("alpha", (1, 10), "choice", methods=("fql",)),
    )
    assert [{*choice} for choice in choices(sweep, "drol")] == 3 * [{"learning_rate", "discount", "num_candidates"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nmae = 'x'", "nmae: unknown key; did you mean name"),
        ("name = 'again'", "not TOML"),
        ("seeds = [0, 'one']", "seeds\\[1\\]: expected an integer, got 'one'"),
        ("seeds = []", "seeds is .*; it must name at least one"),
        ("seeds = [true]", "seeds\\[0\\]: expected an integer, got True"),
        ("seeds = [-1]", "seeds has -1; a seed is from 0 to"),
        ("seeds = [1180591620717411303424]", "seed"),
        ('root = "a\\u0000b"', "root is .*; it contains a null character"),
        (
            "[parameters]\nlearning_rate = { from = -1e308, to = 1e308, distribution = 'uniform' }",
            "parameters.learning_rate goes from -1e\\+308 to 1e\\+308; the width must be below",
        ),
        ("seeds_per_run = 0", "seeds_per_run is 0"),
        ("[search]\nkind = 'gird'", "unknown search.kind 'gird'; did you mean grid"),
        ("[search]\nsmaples = 3", "search.smaples: unknown key; did you mean samples"),
        ("[search]\nsamples = 3", "search.samples is 3; .* a grid has none"),
        ("[search]\nkind = 'random'", "give search.samples"),
        ("[search]\nkind = 'halving'", "search.at is \\[\\]; it must be rising steps"),
        ("[search]\nkind = 'halving'\nat = [40, 20]", "it must be rising steps"),
        ("[search]\nkind = 'halving'\nat = [20]\nkeep = 1", "search.keep is 1"),
        ("[search]\nat = [20]", "are for kind = 'halving'"),
        ("[budget]\nupdates = 0", "budget.updates is 0; it must be above 0"),
        ("[budget]\nhours = 1", "budget.hours: unknown key; did you mean core_hours"),
        (
            "[parameters]\nalpha = [1]",
            "parameters.alpha: drol has no such hyperparameter; add methods = \\['fql'\\] to this parameter",
        ),
        ("[parameters]\nalfa = [1]", "unknown hyperparameter of drol 'alfa'"),
        ("[parameters]\ndiscount = []", "parameters.discount has no values"),
        ("[parameters]\ndiscount = [0.9, 0.9]", "has a value twice"),
        ("[parameters]\ndiscount = 0.9", "parameters.discount: expected .*, got 0.9"),
        ("[parameters]\ndiscount = {from = 1, to = 0, step = 1}", "parameters.discount has no values"),
        ("[parameters]\ndiscount = {from = 0, to = 1, step = 0}", "step of parameters.discount is 0"),
        ("[parameters]\ndiscount = {from = 0, to = 1}", "parameters.discount has from, to; it must have"),
        ("[parameters]\ndiscount = {vlaues = [1]}", "parameters.discount.vlaues: unknown key; did you mean values"),
        ("[parameters]\ndiscount = {from = 0, to = 1, distribution = 'normal'}", "unknown distribution .* 'normal'"),
        ("[parameters]\ndiscount = {from = 0, to = 1, distribution = 'uniform'}", "is a distribution; give values"),
        ("[parameters]\ndiscount = {from = 0, to = 1, distribution = 'log_uniform'}", "it must be above 0"),
        ("[parameters]\ndiscount = {values = [1], methods = ['iql']}", "unknown method of parameters.discount 'iql'"),
        (
            "[parameters]\ndiscount = [1979-05-27]",
            "parameters.discount\\[0\\]: expected .* a number or .*, got datetime.date",
        ),
        ("[parameters]\nsteps = [10, 20]", "would share a folder; give it once"),
        ("[settings]\ndiscount = 0.9\n[parameters]\ndiscount = [0.9]", "is in \\[settings\\] and in \\[parameters\\]"),
        (f"[parameters]\ndiscount = {{from = 0, to = {'9' * 400}, step = 1}}", "so that there are at most"),
        (f"[settings]\na = {'[' * 20_000}", "not TOML"),
        ("[settings]\nseeds = 1", "give seeds outside of \\[settings\\]"),
        ("[settings]\na = {b = 1}", "settings.a: expected"),
    ],
)
def test_a_mistake_is_one_line(text, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        sweep_of(tmp_path, text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            START.replace("pointmaze-medium", "pointmase-medium"),
            "unknown task 'pointmase-medium.*did you mean pointmaze",
        ),
        (START.replace("pointmaze", "cube-*-walker"), "unknown task"),
        (START.replace("smoke", "somke"), "preset is 'somke'"),
        (START + "[settings]\ndiscount = 2.0", "discount is 2.0; it must be from 0 to 1"),
        (START + "[settings]\nalpha = 2.0", "unknown setting 'alpha'"),
        (
            START + "[search]\nkind = 'halving'\nat = [30]",
            "search.at has 30; it must be a multiple of evaluation_interval",
        ),
        (START + "[search]\nkind = 'halving'\nat = [60]", "must be below the 60 steps"),
    ],
)
def test_what_no_run_could_have_is_one_line_before_anything_starts(changed, message, tmp_path):
    with pytest.raises(InputError, match=message):
        planned_runs(sweep_of(tmp_path, "", start=changed))


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the sweep .*`drol sweep new` writes one"):
        read_sweep(tmp_path / "none.toml")


def test_patterns_name_tasks(tmp_path):
    sweep = sweep_of(tmp_path, "", start=START.replace("task1-v0", "task?-v0"))
    assert len(sweep.task_names) == 5
