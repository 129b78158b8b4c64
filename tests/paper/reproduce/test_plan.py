import pytest

from drol.cli.train import parse
from drol.errors import InputError
from drol.experiments.results.collect import collect_results
from drol.experiments.results.files import write_results
from drol.paper.presets import METHODS
from drol.paper.reproduce.experiments import BLOCKS, EXPERIMENTS
from drol.paper.reproduce.plan import command_lines, family_of, make_plan
from drol.runs.directory import RunDirectory
from drol.runs.rows import EvaluationRow
from drol.storage import exclusive
from drol.tasks.base import Episode

MAZE = "pointmaze-medium-navigate-singletask-task1-v0"
EPISODE = Episode(0, -1.0, 1, True)


def finish(run, root, score=50.0):
    """Write what a finished run leaves: its last checkpoint by name, and its evaluations."""
    directory = RunDirectory(root / run.name)
    (directory.checkpoints / f"{run.config.total_steps:09d}").mkdir(parents=True)
    directory.write_config({"run": run.config.to_dict(), "dataset_fingerprint": "ab", "circumstances": {}})
    for seed in run.seeds:
        directory.log_evaluation(EvaluationRow(run.config.total_steps, seed, score, (EPISODE,)))


@pytest.mark.parametrize("scale", BLOCKS)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_run_of_every_plan_has_settings(scale, experiment, tmp_path):
    plan = make_plan(experiment, scale, root=tmp_path, seeds=1)
    assert plan.runs
    assert {run.config.task for run in plan.runs} == {run.task for run in plan.runs}


def test_the_papers_plans_have_the_papers_runs(tmp_path):
    table = make_plan("table1", root=tmp_path, methods=METHODS)
    assert (len(table.runs), {run.seeds for run in table.runs}) == (680, {tuple(range(8))})
    sweep = make_plan("fig3", root=tmp_path)
    assert [run.changes["num_candidates"] for run in sweep.runs[:7]] == [1, 2, 4, 8, 16, 32, 64]
    assert len(sweep.runs) == 21


def test_the_command_of_a_run_makes_that_run(tmp_path):
    run = make_plan("fig4", "small", tasks=MAZE, root=tmp_path).runs[1]
    train, *evaluations = run.commands(tmp_path)
    config, parsed = parse(train[1:])
    assert config == run.config
    assert parsed.out == tmp_path / run.name
    assert [each[-1] for each in evaluations] == ["4", "16"]
    assert command_lines(run, tmp_path)[0].startswith(f"drol train {MAZE} --algorithm drol --preset small")


def test_a_run_that_two_experiments_need_is_planned_once_with_the_evaluations_of_both(tmp_path):
    plan = make_plan(["table1", "fig4"], "small", tasks=MAZE, methods=["drol"], seeds=1, root=tmp_path)
    assert [run.name.split("/")[2] for run in plan.runs] == ["drol-k16", "drol-k1", "drol-k4", "drol-k64"]
    assert plan.runs[0].best_of == (4, 16)


def test_one_seed_of_every_method_comes_before_the_next(tmp_path):
    plan = make_plan("table1", "small", tasks=MAZE, methods=["fql", "bc"], root=tmp_path)
    assert [(run.seeds, run.method) for run in plan.runs[:4]] == [
        ((0,), "bc"),
        ((0,), "fql"),
        ((1,), "bc"),
        ((1,), "fql"),
    ]


def test_seeds_may_share_a_process(tmp_path):
    plan = make_plan("fig2", "smoke", seeds=5, seeds_per_run=2, root=tmp_path)
    assert [run.seeds for run in plan.runs] == [(0, 1), (2, 3), (4,)]


def test_states(tmp_path):
    runs = make_plan("fig4", "smoke", seeds=1, root=tmp_path).runs
    assert [str(run.state(tmp_path)) for run in runs] == ["missing", "missing"]
    finish(runs[0], tmp_path)
    assert str(runs[0].state(tmp_path)) == "trained, evaluations missing"
    finish_extra = RunDirectory(tmp_path / runs[0].name)
    finish_extra.log_extra_evaluation(EvaluationRow(runs[0].config.total_steps, 0, 5.0, best_of=2))
    assert str(runs[0].state(tmp_path)) == "done"
    directory = RunDirectory(tmp_path / runs[1].name)
    (directory.checkpoints / f"{40:09d}").mkdir(parents=True)
    directory.write_config({"run": runs[1].config.to_dict()})
    assert str(runs[1].state(tmp_path)) == "stopped at 40"
    assert not (directory.path / ".lock").exists()  # to look changes nothing
    with exclusive(directory.path / ".lock", "busy"):
        assert str(runs[1].state(tmp_path)) == "running, 40 of 60"


def test_the_runs_with_the_chosen_k_are_planned_when_it_is_known(tmp_path):
    plan = make_plan("table1", "smoke", methods=["drol*"], seeds=1, root=tmp_path)
    assert [run.changes["num_candidates"] for run in plan.runs] == [1, 4]
    assert "not chosen yet, 0 of 2 runs" in plan.notes[0]
    for run, score in zip(plan.runs, (20.0, 60.0), strict=True):
        finish(run, tmp_path, score)
    plan = make_plan("table1", "smoke", methods=["drol*"], seeds=2, root=tmp_path)
    assert not plan.notes
    assert {(run.changes["num_candidates"], run.seeds) for run in plan.runs} >= {(4, (0,)), (4, (1,))}


def test_what_was_run_elsewhere_is_not_run_again(tmp_path):
    runs = make_plan("fig4", "smoke", seeds=1, root=tmp_path / "elsewhere").runs
    finish(runs[0], tmp_path / "elsewhere")
    finish(runs[1], tmp_path / "elsewhere")
    policies = RunDirectory(tmp_path / "elsewhere" / runs[0].name)
    policies.log_extra_evaluation(EvaluationRow(runs[0].config.total_steps, 0, 5.0, (EPISODE,), best_of=2))
    write_results(collect_results(tmp_path / "elsewhere"), tmp_path / "results.csv")
    results = collect_results(tmp_path / "results.csv")
    plan = make_plan("fig4", "smoke", seeds=2, root=tmp_path, results=results)
    assert [str(state) for _, state in plan.states()] == ["done", "missing", "missing", "missing"]
    assert [run.name for run in plan.unfinished()] == [run.name for run in plan.runs[1:]]  # [1] lacks its best of 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiments": "fig9"}, "unknown experiment 'fig9'; did you mean fig4"),
        ({"scale": "large"}, "unknown scale 'large'"),
        ({"tasks": "walker-*"}, "no task of table1 at scale paper matches 'walker-\\*'; it has antmaze-large"),
        ({"methods": ["td3"]}, "unknown method 'td3'"),
        ({"scale": "small", "tasks": "scene*", "methods": ["bc"]}, "table1 at scale small has no runs of bc there"),
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path):
    with pytest.raises(InputError, match=message):
        make_plan(**({"experiments": "table1", "root": tmp_path} | arguments))


def test_families():
    assert family_of("antmaze-large-diverse-v2") == "antmaze (D4RL)"
    assert family_of("pen-human-v1") == "adroit (D4RL)"
    assert family_of("cube-double-play-singletask-v0") == "cube-double"
    assert family_of(MAZE) == "pointmaze-medium"
