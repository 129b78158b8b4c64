import html
import json
import re

import numpy as np
import pytest
from toys import TINY, random_rows, saved_run, tiny_config, tiny_task

from drol.algorithms.bc import BC
from drol.algorithms.fql import FQL
from drol.algorithms.ifql import IFQL
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.evaluation.support import support_warning
from drol.reports import offline_tables
from drol.reports.drawn_actions import states_on_the_way
from drol.reports.report import report
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow
from drol.runs.run import Run
from drol.tasks.base import Episode, mean_return
from drol.training.train import train

SMALL = {"hidden_sizes": (8, 8), "batch_size": 8}
EPISODES = (Episode(0, 1.0, 9, True), Episode(1, -1.0, 12, False))
DIAGNOSTICS = ("routed_bc_loss", "candidate_distance", "candidate_divergence")


def titles(page):
    """Return the titles of a page's sections, without the sections that every page has."""
    return [each for each in re.findall("<h2>(.*?)</h2>", page) if each not in ("Support", "Settings", "Commands")]


def data_of(page):
    """Return the data of a page's scripts."""
    return json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page)[1])


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
    assert titles(page) == ["Learning", "In the maze", "Candidates and their cells", "Metrics"]
    assert f"<b>{run.scores[0]:.1f}</b> success (%) after 6 updates" in page
    assert "A point of a seed is its score over 3 episodes. In each state the policy took one draw." in page
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


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
    sentence = "trains only the candidate of its cell"
    assert titles(pages["drol"]) == ["Learning", "In the maze", "Candidates and their cells", "Metrics"]
    assert sentence in pages["drol"]
    for name in ("fql", "ifql", "bc"):
        assert titles(pages[name]) == ["Learning", "In the maze", "Actions of the policy"]
        assert sentence not in pages[name]
    drawn = {name: data_of(page)["players"][1]["runs"][0] for name, page in pages.items()}
    assert {name: run["count"] for name, run in drawn.items()} == {"drol": 16, "fql": 16, "ifql": 16, "bc": 1}
    assert {name for name, run in drawn.items() if run.get("owners")} == {"drol"}
    assert {name for name, run in drawn.items() if run.get("values")} == {"drol", "fql", "ifql"}  # bc has no critic
    assert "the policy took the best of 5 draws, which the critic chose." in pages["ifql"]
    assert "the policy took its one action." in pages["bc"]


def test_a_run_without_policies_paths_or_rows_still_has_a_page(make_run):
    nothing = make_run(steps=(), name="nothing")
    page = report(nothing).read_text()
    assert titles(page) == ["Missing parts"]
    assert "no saved policy of nothing can be read" in page
    assert "this run has not been evaluated yet" in page
    log_evaluations(nothing, paths=False)
    assert titles(report(nothing).read_text()) == ["Learning", "Missing parts"]


def test_what_is_missing_is_said_and_what_is_damaged_is_named(make_run, caplog):
    run = make_run()
    log_evaluations(run, paths=False)
    page = report(run).read_text()
    assert titles(page) == ["Learning", "Actions of the policy", "Missing parts"]
    words = "the paths of the evaluation after {} updates are missing (run)"
    assert caplog.messages == [words.format(step) for step in (0, 6)]
    assert not run.damaged
    log_evaluations(run)
    paths = run.directory.trajectories / "000000006-seed0.npz"
    paths.write_bytes(paths.read_bytes()[:-50])
    arrays = run.directory.policies / "000000000" / "arrays.safetensors"
    arrays.write_bytes(b"")
    with (run.path / "metrics.jsonl").open("w") as file:
        file.write("nonsense\n")
    caplog.clear()
    page = report(run).read_text()
    assert titles(page) == ["Learning", "In the maze", "Actions of the policy", "Missing parts"]
    assert run.damaged
    assert list(dict.fromkeys(words.split(" (")[0] for words in caplog.messages)) == [
        f"{run.path / 'metrics.jsonl'}: line 1: not JSON",
        f"{paths} cannot be read",
        f"the policy in {arrays.parent} cannot be used: arrays.safetensors does not match its checksum; "
        "remove that folder to continue without it",
    ]
    assert all(str(path) in page for path in (run.path / "metrics.jsonl", paths, arrays.parent))


def test_a_run_of_which_no_policy_is_left_has_a_page(make_run, caplog):
    run = make_run(steps=())
    log_evaluations(run)
    assert titles(report(run).read_text()) == ["Learning", "In the maze", "Missing parts"]
    assert caplog.messages == ["no saved policy of run can be read, so its actions are not drawn"]


def test_a_run_beside_that_has_no_rows_is_no_obstacle(make_run):
    run = make_run()
    log_diagnostics(run)
    assert "Dashed" not in report(run, make_run(name="other")).read_text()


def test_a_run_without_a_simulator_shows_what_held_out_data_says(make_run):
    run = make_run(environment=None, maze=None)
    held_out = {"single_sample_error": 0.5, "routed_bc_loss": 0.2, "outside_support": 0.1}
    run.directory.log_evaluation(EvaluationRow(6, 0, offline=held_out))
    page = report(run).read_text()
    assert titles(page) == ["Actions of the policy", "On held-out data"]
    assert "evaluated on held-out data, without a score" in page
    assert "<code>drol evaluate --offline</code> prints more" in page


def test_offline_evaluations_are_shown(make_run):
    run = make_run(maze=None)
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 1, 0.9, 10, True, 1.0, {"value": 4.25}))
    page = report(run).read_text()
    assert titles(page) == ["Actions of the policy", "Offline evaluation"]
    assert "on held-out data" in page
    assert "<td>4.25</td>" in page
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 1, 0.9, 10, False, 1.0, {"value": 4.25}))
    assert "on the training data" in report(run).read_text()


def test_returns_have_a_standard_error_and_no_interval_of_success(make_run):
    run = make_run(maze=None, score=mean_return, score_name="normalised score")
    log_evaluations(run, paths=False)
    page = report(run).read_text()
    assert "<b>50.0</b> normalised score after 6 updates" in page
    assert "<td>0 ± 1</td>" in page
    assert "95% interval of success" not in page
    (chart,) = data_of(page)["charts"]
    assert not chart["percent"]
    assert "<p>normalised score</p>" in page


def test_fine_tuning_has_a_section_of_its_own(make_run):
    run = make_run(maze=None)
    run.directory.log_online_episode(OnlineEpisodeRow(9, 0, -3.0, 8, False))
    assert titles(report(run).read_text()) == ["Actions of the policy", "Fine-tuning"]


def test_a_folder_is_as_good_as_a_run(make_run, monkeypatch):
    run = make_run(maze=None)
    log_evaluations(run, paths=False)
    page = report(run).read_text()
    monkeypatch.setattr("drol.runs.config.load_task", lambda *_: run.task)
    assert report(str(run.path)) == run.path / "report.html"
    assert (run.path / "report.html").read_text() == page  # the same run is the same page


def test_what_the_dashed_curve_is_and_how_much_nearer_it_stays(make_run):
    run, other = make_run(), make_run(name="demo-cloning")
    for each, value in ((run, 0.2), (other, 0.1)):
        each.directory.log_metrics(MetricsRow(4, 0, {f"diagnostics/{name}": value for name in DIAGNOSTICS}))
    page = report(run, other).read_text()
    assert "Dashed: the run in <code>demo-cloning</code>. The nearest candidate ends at 0.200 here and at 0.100" in page
    assert ": 2.0 times the squared distance from the data." in page
    lines = [line for chart in data_of(page)["charts"] for line in chart["series"]]
    assert [(line["label"], line["y"]) for line in lines if line.get("dashed")] == [("demo-cloning, seed 0", [0.1])] * 3
    with pytest.raises(InputError, match="beside needs a single run, got 2"):
        report([run, other], other)


def test_names_cannot_write_into_the_page(tmp_path):
    config = tiny_config(seeds=(0,), task="<script>alert(2)</script>")
    directory = saved_run(tmp_path / "<script>alert(1)<", config, ())
    page = report(Run(directory, config, tiny_task(score_name="<script>alert(3)</script>", maze=None))).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(2)" in page


def test_states_of_the_data_are_those_of_transitions_not_of_rows():
    rows = random_rows([1] * 10)
    task = tiny_task(train=Dataset.from_rows(**rows))
    np.testing.assert_array_equal(states_on_the_way(None, task, 4), rows["observation"][[0, 6, 12, 18]])


def test_states_on_the_way_are_of_the_episode_of_median_length():
    flat = tiny_task(train=Dataset.from_rows(**random_rows([20], observation_size=2)))
    paths = [np.full((count, 2), count, np.float32) for count in (5, 50, 11)]
    assert [state[0] for state in states_on_the_way(paths, flat, 4)] == [11.0] * 4


# --- several runs


@pytest.fixture
def make_several(tmp_path, monkeypatch):
    """Two groups of two seeds each, a run for each seed, evaluated twice."""
    monkeypatch.chdir(tmp_path)
    runs, task = [], tiny_task()
    for name, algorithm in (("drol", TINY), ("fql", FQL(**SMALL))):
        for seed in (0, 1):
            config = tiny_config(algorithm=algorithm, seeds=(seed,), steps=6)
            run = Run(saved_run(tmp_path / name / f"seed-{seed}", config, (0, 6)), config, task)
            for step, wins in ((0, 0), (6, 3 if name == "drol" else 1 + seed)):
                episodes = tuple(Episode(each, 0.0, 5, each < wins) for each in range(4))
                run.directory.log_evaluation(EvaluationRow(step, seed, 25.0 * wins, episodes))
                run.directory.log_metrics(MetricsRow(step, seed, {"critic_loss": 1.0 + seed, f"{name}_only": 2.0}))
            runs.append(run)
    return runs


def test_several_runs_are_one_page_with_one_legend_and_the_comparison(make_several, tmp_path):
    path = report(make_several)
    assert path.resolve() == tmp_path / "report.html"
    page = path.read_text()
    assert len(page) < 3_000_000
    comparison = ["Scores", "All tasks", "Performance profiles"]
    assert titles(page) == ["Learning", *comparison, "Actions of the policy", "Metrics", "Missing parts"]
    data = data_of(page)
    assert [each["label"] for each in data["groups"]] == ["drol", "fql"]
    means = {line["label"]: line for line in data["charts"][0]["series"] if not line.get("thin")}
    assert means["drol"]["y"] == [0.0, 75.0]
    assert means["fql"]["y"] == [0.0, 37.5]
    assert means["fql"]["low"][1] < 37.5 < means["fql"]["high"][1]
    assert "<b>75.0</b> success (%) of drol, the highest mean of 2 groups" in page
    losses = {chart["title"]: chart["series"] for chart in data["charts"][1:]}
    assert {line["label"] for line in losses["critic_loss"] if not line.get("thin")} == {"drol", "fql"}
    assert {line["label"] for line in losses["fql_only"] if not line.get("thin")} == {"fql"}
    mean = next(line for line in losses["critic_loss"] if line["label"] == "drol")
    assert (mean["y"], mean["low"], mean["high"]) == ([1.5, 1.5], [1.0, 1.0], [2.0, 2.0])


def test_runs_that_contradict_each_other_say_so_first(make_several, tmp_path):
    """The page said that evaluated runs had not been evaluated."""
    first = make_several[0]
    other = Run(saved_run(tmp_path / "again", first.config, (0, 6)), first.config, first.task)
    other.directory.log_evaluation(EvaluationRow(6, 0, 0.0, tuple(Episode(each, 0.0, 5, False) for each in range(4))))
    page = report([first, other]).read_text()
    assert "<p>The scores are not compared: different scores of the same policy:" in page
    assert "not been evaluated" not in page


def test_what_differs_between_runs_is_a_line_for_each(make_several):
    page = report(make_several).read_text()
    table = page[page.index("A line for each run") :]
    head = table[: table.index("</tr>")]
    assert "<th>seeds</th>" in head
    assert "<th>num_candidates</th>" in head
    assert "<th>steps</th>" not in head  # the same in all
    assert table.count("<td>fql</td>") == 2


def test_a_metric_that_is_nan_in_one_run_is_a_gap_there_and_no_part_of_the_mean(make_several):
    make_several[0].directory.log_metrics(MetricsRow(8, 0, {"critic_loss": float("nan")}))
    make_several[1].directory.log_metrics(MetricsRow(8, 1, {"critic_loss": 5.0}))
    make_several[2].directory.log_metrics(MetricsRow(8, 0, {"critic_loss": float("inf")}))
    lines = next(
        chart for chart in data_of(report(make_several).read_text())["charts"] if chart["title"] == "critic_loss"
    )
    by_label = {line["label"]: line["y"][-1] for line in lines["series"]}
    assert by_label == {"drol, seed 0": None, "drol, seed 1": 5.0, "drol": 5.0,
                        "fql, seed 0": None, "fql, seed 1": None, "fql": None}  # fmt: skip


def test_runs_below_a_folder_are_found_and_an_unreadable_run_is_listed(make_several, tmp_path, monkeypatch):
    monkeypatch.setattr("drol.runs.config.load_task", lambda *_: make_several[0].task)
    broken = tmp_path / "drol" / "seed-9"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    with (make_several[0].path / "evaluations.jsonl").open("a") as file:
        file.write('{"step": 9, "seed": 0, "sco')  # cut off by a kill
    page = report(tmp_path, out=tmp_path / "all.html").read_text()
    assert f"skipped {broken}: {broken / 'config.json'}: not JSON" in page
    assert [each["label"] for each in data_of(page)["groups"]] == ["drol", "fql"]
    with pytest.raises(InputError, match=r"config.json: not JSON"):
        report([broken])


def test_a_page_that_cannot_be_made_is_refused_with_what_to_do(tmp_path, make_run):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r".*empty contains no runs; a run has a config.json, which `drol train`"):
        report(tmp_path / "empty")
    with pytest.raises(InputError, match="no run was given"):
        report([])
    with pytest.raises(InputError, match=r"the page is page.txt; its name must end in .html"):
        report(make_run(), out="page.txt")
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        report(make_run(), out=tmp_path / "no" / "page.html")
    with pytest.raises(InputError, match="videos is -1"):
        report(make_run(), videos=-1)


def test_a_run_whose_task_is_not_here_has_a_page_without_its_pictures(make_several, caplog):
    for run in make_several:
        del run.task  # and no source knows the task "toy"
    page = report(make_several).read_text()
    assert titles(page) == ["Learning", "Scores", "All tasks", "Performance profiles", "Metrics", "Missing parts"]
    assert any(words.startswith("the task toy cannot be loaded, so its data is not shown") for words in caplog.messages)


def test_a_policy_that_leaves_data_without_a_simulator_is_reported_first(make_run, monkeypatch, caplog):
    run = make_run()
    run.task = tiny_task(None, maze=None)
    figures = {"single_sample_error": 1.0, "routed_bc_loss": 1.0, "support_ratio": 9.0, "outside_support": 0.87}
    monkeypatch.setattr(offline_tables, "offline_scores", lambda *_: figures)
    page = report(run).read_text()
    words = support_warning(0.87, f"step {run.steps[-1]:,}, seed {run.config.seeds[0]} of {run.path}")
    assert words in caplog.messages
    assert f"<b>Warning:</b> {html.escape(words)}" in page
    assert page.index("<b>Warning:</b>") < page.index("<h2>")
