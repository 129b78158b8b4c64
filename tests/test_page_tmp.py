import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toys import TINY, random_rows, saved_run, tiny_config, tiny_task

from drol.algorithms.bc import BC
from drol.algorithms.fql import FQL
from drol.algorithms.ifql import IFQL
from drol.data.dataset import Dataset
from drol.experiments.report import report
from drol.experiments.report.page import beside_caption, first_middle_last, states_on_the_way
from drol.runs.rows import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow
from drol.runs.run import Run
from drol.tasks.base import Episode, mean_return
from drol.training.train import train

pytestmark = pytest.mark.usefixtures("quick_compile")

SMALL = {"hidden_sizes": (8, 8), "batch_size": 8}
EPISODES = (Episode(0, 1.0, 9, True), Episode(1, -1.0, 12, False))
DIAGNOSTICS = ("routed_bc_loss", "candidate_distance", "candidate_divergence")


def titles(page):
    return re.findall("<h2>(.*?)</h2>", page)


@pytest.fixture
def make_run(tmp_path):
    """A run of one seed with untrained policies of the steps 0 and 6; rows and paths are logged by the tests."""

    def make(algorithm=TINY, steps=(0, 6), name="run", **changes):
        config = tiny_config(algorithm=algorithm, seeds=(0,), steps=6)
        return Run(saved_run(tmp_path / name, config, steps), config, tiny_task(**changes))

    return make


def log_evaluations(run, paths=True):
    for step in (0, 6):
        run.directory.log_evaluation(EvaluationRow(step, 0, 50.0, EPISODES))
        if paths:
            run.directory.save_trajectories(step, 0, [np.zeros((10, 2)), np.ones((13, 2))])


def log_diagnostics(run):
    run.directory.log_metrics(MetricsRow(4, 0, {f"diagnostics/{name}": 0.5 for name in DIAGNOSTICS}))


def test_a_trained_run_in_a_maze_shows_its_score_its_paths_and_its_candidates(tmp_path):
    task = tiny_task()
    run = train(tiny_config(seeds=(0,), steps=6), tmp_path / "run", task, processes=2, quiet=True)
    page = report(run).read_text()
    assert titles(page) == ["Learning", "In the maze", "Candidates and their cells", "Routing"]
    assert f"<b>{run.scores[0]:.1f}</b> success (%) after 6 updates" in page
    assert "score of one seed over 3 episodes. In each state the policy played one draw." in page
    assert "http" not in re.sub(r"http://www\.w3\.org\S+|http://purl\S+|http://creativecommons\S+", "", page)
    assert {each.name for each in (tmp_path / "run" / "figures").iterdir()} == {
        "learning.png", "maze.png", "states.png", "cells.png", "routing.png",
    }  # fmt: skip


def test_what_is_said_of_actions_fits_the_method(make_run):
    routed = make_run(TINY, name="drol")
    drawn = make_run(FQL(**SMALL), name="fql")
    chosen = make_run(IFQL(**SMALL, num_samples=5), name="ifql")
    fixed = make_run(BC(**SMALL), name="bc")
    log_diagnostics(routed)
    pages = {}
    for run in (routed, drawn, chosen, fixed):
        log_evaluations(run)
        pages[run.path.name] = report(run).read_text()
    sentence = "trains only the candidate whose cell it falls in"
    assert titles(pages["drol"]) == ["Learning", "In the maze", "Candidates and their cells", "Routing"]
    assert sentence in pages["drol"]
    for name in ("fql", "ifql"):
        assert titles(pages[name]) == ["Learning", "In the maze", "Actions of the policy"]
        assert "Green dots are 16 draws of the policy" in pages[name]
    assert titles(pages["bc"]) == ["Learning", "In the maze"]
    assert all(sentence not in pages[name] for name in ("fql", "ifql", "bc"))
    assert "the policy played the best of 5 draws, which the critic chose." in pages["ifql"]
    assert "the policy played its one action." in pages["bc"]


def test_a_run_without_policies_paths_or_rows_still_has_a_page(make_run):
    nothing = make_run(steps=(), name="nothing")
    page = report(nothing).read_text()
    assert titles(page) == ["What is missing"]
    assert "this run has not been evaluated yet" in page
    log_evaluations(nothing, paths=False)
    assert titles(report(nothing).read_text()) == ["Learning", "What is missing"]


def test_what_is_missing_is_said_and_what_is_damaged_is_named(make_run):
    run = make_run()
    log_evaluations(run, paths=False)
    said = []
    page = report(run, note=said.append).read_text()
    assert titles(page) == ["Learning", "Actions of the policy", "What is missing"]
    assert said == [f"the paths of the evaluation after {step} updates are not there to be drawn" for step in (0, 6)]
    assert run.damage == []
    log_evaluations(run)
    paths = run.directory.trajectories / "000000006-seed0.npz"
    paths.write_bytes(paths.read_bytes()[:-50])
    arrays = run.directory.policies / "000000000" / "arrays.safetensors"
    arrays.write_bytes(b"")
    with (run.path / "metrics.jsonl").open("w") as file:
        file.write("nonsense\n")
    said.clear()
    page = report(run, note=said.append).read_text()
    assert titles(page) == ["Learning", "In the maze", "Actions of the policy", "What is missing"]
    assert said == []
    assert [words.split(" (")[0] for words in run.damage] == [
        f"line 1 of {run.path / 'metrics.jsonl'} is not JSON",
        f"{paths} cannot be read",
        f"the policy in {arrays.parent} cannot be used: arrays.safetensors does not match its checksum; "
        "remove that folder to go on without it",
    ]
    assert all(str(path) in page for path in (run.path / "metrics.jsonl", paths, arrays.parent))


def test_a_run_of_which_no_policy_is_left_has_a_page(make_run):
    run = make_run(steps=())
    log_evaluations(run)
    said = []
    assert titles(report(run, note=said.append).read_text()) == ["Learning", "In the maze", "What is missing"]
    assert said == ["no saved policy can be read, so its actions are not drawn"]


def test_a_run_beside_that_has_no_rows_is_no_obstacle(make_run):
    run = make_run()
    log_diagnostics(run)
    assert "Dashed" not in report(run, make_run(name="other")).read_text()


def test_a_run_without_a_simulator_shows_what_held_out_data_says(make_run):
    run = make_run(environment=None, maze=None)
    held_out = {"single_sample_error": 0.5, "routed_bc_loss": 0.2, "outside_support": 0.1}
    run.directory.log_evaluation(EvaluationRow(6, 0, offline=held_out))
    page = report(run).read_text()
    assert titles(page) == ["On held-out data"]
    assert "judged by held-out data, not scored" in page
    assert "<code>drol evaluate --offline</code> says more" in page


def test_offline_evaluations_are_shown(make_run):
    run = make_run(maze=None)
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 1, 0.9, 10, True, 1.0, {"value": 4.25}))
    page = report(run).read_text()
    assert titles(page) == ["By data alone"]
    assert "found on held-out data" in page
    assert "<td>4.25</td>" in page
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 1, 0.9, 10, False, 1.0, {"value": 4.25}))
    assert "found on data that the policy was trained on" in report(run).read_text()


def test_returns_have_a_standard_error_and_no_interval_of_success(make_run):
    run = make_run(maze=None, score=mean_return, score_name="normalised score")
    log_evaluations(run, paths=False)
    page = report(run).read_text()
    assert "<b>50.0</b> normalised score after 6 updates" in page
    assert "<td>0 ± 1</td>" in page
    assert "95%" not in page


def test_fine_tuning_has_a_section_of_its_own(make_run):
    run = make_run(maze=None)
    run.directory.log_online_episode(OnlineEpisodeRow(9, 0, -3.0, 8, False))
    assert titles(report(run).read_text()) == ["Fine-tuning"]


def test_a_folder_is_as_good_as_a_run(make_run, monkeypatch):
    run = make_run(maze=None)
    log_evaluations(run, paths=False)
    page = report(run).read_text()
    monkeypatch.setattr("drol.runs.config.load_task", lambda *_: run.task)
    assert report(str(run.path)) == run.path / "report.html"
    assert (run.path / "report.html").read_text() == page  # the same run is the same page


def test_what_the_dashed_curve_is_and_how_much_nearer_it_stays():
    rows, others = (
        [MetricsRow(step, 0, {"diagnostics/routed_bc_loss": value}) for step in (1, 2)] for value in (0.2, 0.1)
    )
    caption = beside_caption(rows, others, SimpleNamespace(path=Path("runs/demo-cloning")))  # type: ignore[arg-type]
    assert "Dashed: the run in `demo-cloning`. The nearest candidate ends at 0.200 here and at 0.100 there" in caption
    assert ": 2.0 times the squared distance from the data." in caption


def test_names_cannot_write_into_the_page(tmp_path):
    config = tiny_config(seeds=(0,), task="<script>alert(2)</script>")
    directory = saved_run(tmp_path / "<script>alert(1)<", config, ())
    page = report(Run(directory, config, tiny_task(score_name="<script>alert(3)</script>", maze=None))).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(2)" in page


def test_states_of_the_data_are_those_of_transitions_not_of_rows():
    rows = random_rows([1] * 10)
    task = tiny_task(train=Dataset.from_rows(**rows))
    np.testing.assert_array_equal(states_on_the_way(None, task), rows["observation"][[0, 6, 12, 18]])


def test_states_on_the_way_are_of_the_episode_of_median_length():
    flat = tiny_task(train=Dataset.from_rows(**random_rows([20], observation_size=2)))
    paths = [np.full((count, 2), count, np.float32) for count in (5, 50, 11)]
    assert [state[0] for state in states_on_the_way(paths, flat)] == [11.0] * 4


def test_at_most_three_of_many_are_drawn():
    assert first_middle_last([1]) == [1]
    assert first_middle_last([1, 2]) == [1, 2]
    assert first_middle_last(range(10)) == [0, 5, 9]
