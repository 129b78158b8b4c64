import json

import pytest
from toys import saved_run, tiny_config

from drol.algorithms.ifql import IFQL
from drol.errors import InputError
from drol.results.collect import collect_results
from drol.results.result_files import write_results
from drol.runs.records import EvaluationRow, MetricsRow
from drol.tasks.base import Episode

EPISODES = (Episode(5, -2.0, 3, True), Episode(6, -4.0, 5, False))
OGBENCH = "pointmaze-medium-navigate-singletask-task1-v0"


@pytest.fixture
def make_run(tmp_path):
    """A run with an evaluation of two seeds, without policies."""

    def make(name="deep/a/run", **changes):
        directory = saved_run(tmp_path / name, tiny_config(**changes), ())
        recorded = directory.read_config() | {
            "dataset_fingerprint": "f00d",
            "circumstances": {"drol": "0.1.0", "jax": "0.10.1", "cores": 2, "ogbench": None, "mujoco": "3.9.1"},
        }
        directory.write_config(recorded)
        for seed in (0, 7):
            directory.log_evaluation(EvaluationRow(6, seed, 50.0, EPISODES))
        return directory

    return make


def test_a_run_gives_a_row_for_each_seed_and_evaluation(make_run, tmp_path):
    directory = make_run()
    directory.log_metrics(MetricsRow(6, 7, {"critic_loss": 1.0, "diagnostics/routed_bc_loss": 0.25}))
    directory.log_extra_evaluation(EvaluationRow(6, 0, 100.0, EPISODES[:1], best_of=16))
    first, second, extra = collect_results(tmp_path)
    assert (first.seed, second.seed, extra.seed) == (0, 7, 0)
    assert (first.task, first.method, first.step, first.steps) == ("toy", "drol", 6, 12)
    assert (first.evaluation, first.best_of, extra.evaluation, extra.best_of) == ("training", 1, "extra", 16)
    assert (first.first_episode_seed, first.episodes, first.outcomes) == (5, 2, "10")
    assert (first.score, first.mean_return, first.mean_length) == (50.0, -3.0, 4.0)
    assert first.versions == "drol 0.1.0, jax 0.10.1, mujoco 3.9.1"
    assert (first.dataset_fingerprint, first.run) == ("f00d", "a/run")
    assert (first.figures, second.figures) == ({}, {"routed_bc_loss": 0.25})


def test_settings_are_what_differs_from_the_defaults_and_matters(make_run):
    (result, _) = collect_results(make_run(observation_scale=4.0, evaluation_seed=5, dataset="x.npz").path)
    given = {"batch_size": 32, "hidden_sizes": [16, 16], "num_candidates": 4, "observation_scale": 4.0}
    assert json.loads(result.settings) == given
    (longer, _) = collect_results(make_run("longer", observation_scale=4.0, steps=99).path)
    assert longer.settings_id == result.settings_id


def test_evaluations_of_online_training_and_other_ways_to_act_are_groups_of_their_own(make_run):
    directory = make_run(steps=5, online_steps=3)
    directory.log_evaluation(EvaluationRow(5, 0, 50.0, EPISODES))
    directory.log_extra_evaluation(EvaluationRow(5, 0, 50.0, EPISODES, best_of=8, acting={"num_candidates": 2}))
    online, _, offline, acting = collect_results(directory.path)
    assert json.loads(online.settings)["steps"] == 5
    assert "steps" not in json.loads(offline.settings)
    assert json.loads(acting.settings)["num_candidates"] == 2


def test_the_number_of_actions_is_the_methods_own_where_none_was_given(make_run):
    algorithm = IFQL(hidden_sizes=(8, 8), batch_size=8)
    assert collect_results(make_run(algorithm=algorithm).path)[0].best_of == algorithm.default_best_of > 1


def test_the_timing_of_success_is_resolved_without_loading_data(make_run):
    assert collect_results(make_run("a").path)[0].success_timing == ""
    assert collect_results(make_run("b", task=OGBENCH).path)[0].success_timing == "before"
    assert collect_results(make_run("c", task=OGBENCH, success_timing="after").path)[0].success_timing == "after"


def test_the_score_is_named_by_the_policy_or_else_by_what_it_agrees_with(make_run):
    directory = make_run()
    assert collect_results(directory.path)[0].score_name == "success (%)"
    directory.log_evaluation(EvaluationRow(12, 0, -3.0, EPISODES))
    assert collect_results(directory.path)[0].score_name == "score"


def test_runs_and_files_are_collected_together(make_run, tmp_path):
    first, _ = make_run("first"), make_run("second")
    write_results(collect_results(first.path), tmp_path / "results.csv")
    assert len(collect_results([tmp_path, tmp_path / "results.csv"])) == 6


def test_a_run_that_cannot_be_opened_is_named_and_the_rest_collected(make_run, tmp_path, caplog):
    make_run("fine")
    directory = make_run("theirs")
    recorded = directory.read_config()
    recorded["run"]["algorithm"]["name"] = "theirs"
    directory.write_config(recorded)
    make_run("broken").write_config({})
    results = collect_results(tmp_path)
    assert len(results) == 2
    broken, unknown = results.skipped
    config = tmp_path / "broken" / "config.json"
    assert broken == f"{tmp_path / 'broken'}: {config}: run: expected an object, got None"
    assert unknown.startswith(
        f"{tmp_path / 'theirs'}: {tmp_path / 'theirs' / 'config.json'}: unknown algorithm 'theirs'"
    )
    assert caplog.messages == [f"skipped: {words}" for words in results.skipped]


def test_evaluations_without_a_score_are_no_results(make_run):
    directory = make_run()
    directory.log_evaluation(EvaluationRow(12, 0, offline={"single_sample_error": 0.5}))
    assert [row.step for row in collect_results(directory.path)] == [6, 6]


def test_a_score_that_contradicts_its_episodes_is_left_out_and_named(make_run, tmp_path, caplog):
    """`drol results export` wrote such rows, which `drol results check` then rejected."""
    directory = make_run()
    directory.log_evaluation(EvaluationRow(12, 0, float("nan"), EPISODES))
    results = collect_results(tmp_path)
    assert [each.step for each in results] == [6, 6]
    [words] = results.skipped
    assert words.endswith("step 12, seed 0 (training): score: expected a finite number, got nan")
    assert words in caplog.text


def test_what_holds_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run with evaluations is in"):
        collect_results(tmp_path)
    with pytest.raises(InputError, match="is not a folder; give a run, a folder with runs, or a file"):
        collect_results(tmp_path / "nothing")


def test_bad_lines_and_damaged_policies_are_named_and_the_rest_is_collected(make_run, tmp_path):
    directory = make_run("run")
    count = len(collect_results(tmp_path))
    with (tmp_path / "run" / "evaluations.jsonl").open("a") as file:
        file.write("{}\n")
    damaged = directory.policies / "000000006"
    damaged.mkdir(parents=True)
    (damaged / "manifest.json").write_text("[" * 100_000)
    results = collect_results(tmp_path)
    assert len(results) == count
    assert results.skipped == [f"{tmp_path / 'run' / 'evaluations.jsonl'}: line 3: step: missing"]
