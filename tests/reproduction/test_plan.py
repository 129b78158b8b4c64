from pathlib import Path

import pytest

from drol.cli.main import main
from drol.errors import InputError
from drol.planning.run_file import RunFile
from drol.presets.settings import METHODS
from drol.results.collect import collect_results
from drol.results.result_files import write_results
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow
from drol.storage import exclusive
from drol.tasks.base import Episode
from drol_reproduction.experiments import BLOCKS
from drol_reproduction.plan import family_of, make_plan

MAZE = "pointmaze-medium-navigate-singletask-task1-v0"
EPISODE = Episode(0, -1.0, 1, True)


def finish(run, root, score=50.0):
    """Write what a finished run leaves: its last checkpoint by name, and its evaluations."""
    directory = RunDirectory(root / run.name)
    (directory.checkpoints / f"{run.config.total_steps:09d}").mkdir(parents=True)
    directory.write_config({"run": run.config.to_dict(), "dataset_fingerprint": "ab", "circumstances": {}})
    for seed in run.seeds:
        directory.log_evaluation(EvaluationRow(run.config.total_steps, seed, score, (EPISODE,)))


@pytest.mark.parametrize(("scale", "experiment"), [(scale, name) for scale in BLOCKS for name in BLOCKS[scale]])
def test_every_run_of_every_plan_has_settings(scale, experiment, tmp_path):
    plan = make_plan(experiment, scale, root=tmp_path, seeds=1)
    assert plan.runs
    assert {run.config.task for run in plan.runs} == {run.task for run in plan.runs}


def test_an_experiment_without_runs_at_a_scale_names_the_scales_that_have_some():
    with pytest.raises(InputError, match="fig4 has no runs at scale short; it has runs at scale paper, small, smoke"):
        make_plan("fig4", "short")


def test_a_block_can_change_the_number_of_updates(tmp_path):
    runs = make_plan("fig3", "short", root=tmp_path).runs
    assert [(run.changes["num_candidates"], run.steps) for run in runs] == [(k, 20_000) for k in (16, 1, 4, 64)]


def test_the_papers_plans_have_the_papers_runs(tmp_path):
    table = make_plan("table1", root=tmp_path, methods=METHODS)
    assert (len(table.runs), {run.seeds for run in table.runs}) == (680, {tuple(range(8))})
    sweep = make_plan("fig3", root=tmp_path)
    assert [run.changes["num_candidates"] for run in sweep.runs[:7]] == [1, 2, 4, 8, 16, 32, 64]
    assert len(sweep.runs) == 21


def test_the_commands_of_the_runs_are_printed(tmp_path, capsys):
    plan = ["paper", "plan", "fig4", "--scale", "small", "--tasks", MAZE, "--seeds", "1", "--root", str(tmp_path)]
    assert main([*plan, "--commands"]) == 0
    folder = tmp_path / "small" / MAZE / "drol-k1" / "seed-0"
    start = f"drol train {MAZE} --algorithm drol --preset small --num-candidates 1 --seeds 0 --out {folder}\n"
    evaluations = f"drol evaluate {folder} --best-of 4\ndrol evaluate {folder} --best-of 16\n"
    assert start + evaluations in capsys.readouterr().out


def test_the_file_of_a_run_has_its_settings_and_its_evaluations(tmp_path):
    run = make_plan("fig4", "small", tasks=MAZE, root=tmp_path).runs[1]
    job = run.job(tmp_path)
    assert RunFile.read(Path(job.arguments[1])) == RunFile(run.config, tmp_path / run.name, (4, 16))
    assert run.job(tmp_path) == job
    assert len([*(tmp_path / "jobs").iterdir()]) == 1


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


def test_statuses(tmp_path):
    runs = make_plan("fig4", "smoke", seeds=1, root=tmp_path).runs
    assert [str(run.status(tmp_path)) for run in runs] == ["missing", "missing"]
    finish(runs[0], tmp_path)
    assert str(runs[0].status(tmp_path)) == "trained, evaluations missing"
    finish_extra = RunDirectory(tmp_path / runs[0].name)
    finish_extra.log_extra_evaluation(EvaluationRow(runs[0].config.total_steps, 0, 5.0, best_of=2))
    assert str(runs[0].status(tmp_path)) == "done"
    directory = RunDirectory(tmp_path / runs[1].name)
    (directory.checkpoints / f"{40:09d}").mkdir(parents=True)
    directory.write_config({"run": runs[1].config.to_dict()})
    assert str(runs[1].status(tmp_path)) == "stopped at 40"
    assert not (directory.path / ".lock").exists()  # reading the status changes nothing
    with exclusive(directory.path / ".lock", "busy"):
        assert str(runs[1].status(tmp_path)) == "running, 40 of 60"


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
    assert [str(status) for _, status in plan.statuses()] == ["done", "missing", "missing", "missing"]
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
