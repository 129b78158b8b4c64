import pytest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.cli.main import main
from drol.errors import InputError
from drol.evaluation.support import support_warning
from drol.results import choose as choosing
from drol.results.choose import choose, policies_to_try
from drol.runs.records import EvaluationRow, OfflineRow
from drol.tasks.base import Episode


def made_run(path, scores=None, values=None, episodes=50, **changes):
    """A run of one seed whose policies had these scores, or these offline values, by step."""
    directory = saved_run(
        path, tiny_config(seeds=(0,), **changes), tuple({**(scores or {}), **(values or {})}) or (6, 12)
    )
    for step, score in (scores or {}).items():
        played = tuple(Episode(each, 0.0, 1, each < score * episodes / 100) for each in range(episodes))
        directory.log_evaluation(EvaluationRow(step, 0, float(score), played))
    for step, (low, high) in (values or {}).items():
        figures = {"value_low": low, "value_high": high, "value": (low + high) / 2, "outside_support": 0.25}
        directory.log_offline_evaluation(OfflineRow(step, 0, 1, 0.99, 10, True, 1.0, figures))
    return drol.open_run(path, task=tiny_task())


def test_scores_rank_and_ties_are_told(tmp_path):
    first = made_run(tmp_path / "a", {6: 90, 12: 84})
    second = made_run(tmp_path / "b", {6: 20, 12: 30})
    choice = choose([first, second])
    assert [(each.run.name, each.step, each.value) for each in choice.candidates] == [
        ("a", 6, 90), ("a", 12, 84), ("b", 12, 30), ("b", 6, 20),
    ]  # fmt: skip
    assert choice.tied == choice.candidates[:2]
    assert "2 policies (*) do not differ significantly" in choice.verdict
    assert f"step 12, seed 0 of {tmp_path / 'a'}" in choice.verdict
    assert choice.candidates[0].interval == pytest.approx((78.6, 95.7), abs=0.1)  # Wilson, 45 of 50


def test_a_clear_winner_is_called_so(tmp_path):
    choice = choose([made_run(tmp_path / "a", {6: 98}), made_run(tmp_path / "b", {12: 10})])
    assert choice.tied == (choice.best,)
    assert choice.verdict == "the first policy is significantly better than each of the others"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_score_that_is_not_finite_is_left_out_and_named(tmp_path, caplog, order):
    """NaN ranked by the order of the arguments, and was recommended."""
    runs = [made_run(tmp_path / "a", {6: 50})]
    directory = saved_run(tmp_path / "nan", tiny_config(seeds=(0,)), (6,))
    directory.log_evaluation(EvaluationRow(6, 0, float("nan"), (Episode(0, float("nan"), 1, False),)))
    runs.append(drol.open_run(tmp_path / "nan", task=tiny_task()))
    choice = choose([runs[each] for each in order])
    assert [each.run.name for each in choice.candidates] == ["a"]
    assert f"left out: step 6, seed 0 of {tmp_path / 'nan'}: its score is nan" in caplog.text


def test_an_offline_value_that_is_not_finite_is_left_out_and_named(tmp_path, caplog):
    run = made_run(tmp_path / "a", values={6: (float("nan"), -10.0), 12: (-40.0, -35.0)})
    assert [each.step for each in choose([run]).candidates] == [12]
    assert "step 6, seed 0" in caplog.text
    assert [each.step for each in policies_to_try([run], last=2)] == [12, 6]


def test_a_folder_with_runs_may_be_given(tmp_path, monkeypatch):
    made_run(tmp_path / "below" / "a", {6: 98})
    made_run(tmp_path / "below" / "b", {12: 10})
    choice = choose([tmp_path / "below", tmp_path / "below" / "a"])
    assert [(each.run.name, each.step) for each in choice.candidates] == [("a", 6), ("b", 12)]
    with pytest.raises(InputError, match="no/such is not a run folder"):
        choose(["no/such"])


def test_a_policy_alone_is_not_called_better(tmp_path):
    assert choose([made_run(tmp_path / "a", {6: 98})]).verdict == "only one policy was found"


def test_without_scores_the_lower_end_of_the_offline_value_ranks(tmp_path):
    run = made_run(tmp_path / "a", values={6: (-50.0, -10.0), 12: (-40.0, -35.0)})
    choice = choose([run])
    assert (choice.evidence, choice.best.step, len(choice.tied), choice.best.outside_support) == (
        "offline value",
        12,
        2,
        0.25,
    )


def test_few_episodes_do_not_make_a_policy_worse(tmp_path):
    runs = [
        made_run(tmp_path / "a", {6: 90}),
        made_run(tmp_path / "b", {6: 60}, episodes=500),
        made_run(tmp_path / "c", {6: 50}, episodes=2),
    ]
    choice = choose(runs)
    assert [each.run.name for each in choice.tied] == ["a", "c"]


def evaluate_as_told(monkeypatch, value=-7.0, outside=0.05):
    """Replace offline evaluation by a function that records its calls."""
    asked = []

    def evaluate(run, step, best_of, updates, discount):
        asked.append((run.path.name, step, best_of, updates, discount))
        figures = {"value_low": value, "value_high": value + 1, "outside_support": outside}
        run.directory.log_offline_evaluation(OfflineRow(step, 0, best_of, discount, updates, True, 1.0, figures))

    monkeypatch.setattr(choosing, "evaluate_offline", evaluate)
    return asked


def test_offline_values_of_other_discounts_are_computed_again_so_that_all_are_alike(tmp_path, monkeypatch):
    asked = evaluate_as_told(monkeypatch)
    first = made_run(tmp_path / "a", values={6: (-50.0, -10.0), 12: (-60.0, -20.0)})
    second = made_run(tmp_path / "b")
    figures = {"value_low": -6.0, "value_high": -5.0, "outside_support": 0.05}
    second.directory.log_offline_evaluation(OfflineRow(6, 0, 4, 0.995, 10, True, 1.0, figures))
    said = []
    choice = choose([first, second], on_evaluation=said.append)
    assert asked == [("b", 6, 4, 10, 0.99)]
    assert said == [f"evaluating step 6 of {tmp_path / 'b'} on data with discount 0.99"]
    assert [(each.run.name, each.value) for each in choice.candidates] == [("b", -7), ("a", -50), ("a", -60)]


def test_runs_without_a_simulator_and_without_a_value_are_evaluated(tmp_path, monkeypatch):
    asked = evaluate_as_told(monkeypatch)
    run = made_run(tmp_path / "a")
    run.task = tiny_task(None)
    assert choose([run]).best.step == 12
    assert asked == [("a", 12, 1, 5000, 0.99)]


def valued_run(path, value, outside):
    run = made_run(path, values={6: (value - 1, value + 1)})
    figures = {"value_low": value - 1, "value_high": value + 1, "outside_support": outside}
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 1, 0.99, 10, True, 1.0, figures))
    return run


def test_a_policy_that_leaves_the_data_is_not_recommended_by_its_offline_value(tmp_path):
    runaway, inside = valued_run(tmp_path / "runaway", 100.0, 0.87), valued_run(tmp_path / "inside", -50.0, 0.06)
    choice = choose([runaway, inside])
    assert [each.run.name for each in choice.candidates] == ["inside", "runaway"]
    assert choice.tied == (choice.best,)
    assert choice.warnings == [support_warning(0.87, f"step 6, seed 0 of {tmp_path / 'runaway'}")]
    assert "better than each of the others" not in choice.verdict
    assert "only real trials can show whether it is better" in choice.verdict
    assert "no policy can be recommended" in choose([runaway]).verdict


def test_trials_begin_with_policies_inside_the_data_and_higher_values(tmp_path):
    runs = [
        valued_run(tmp_path / "runaway", 100.0, 0.87),
        made_run(tmp_path / "unknown"),
        valued_run(tmp_path / "low", -50.0, 0.06),
        valued_run(tmp_path / "high", -5.0, 0.06),
    ]
    found = policies_to_try(runs)
    assert [each.run.name for each in found] == ["high", "low", "unknown", "runaway"]
    assert [each.warning is not None for each in found] == [False, False, False, True]
    assert [each.name for each in policies_to_try([runs[1]], last=2)] == [
        f"{tmp_path / 'unknown'}:12",
        f"{tmp_path / 'unknown'}:6",
    ]


def test_the_command_plans_trials_takes_results_and_answers(tmp_path, monkeypatch, capsys):
    paths = [str(made_run(tmp_path / name).path) for name in "abcd"]
    assert main(["choose", *paths, "--trials", "12"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "12 trials among 4 policies: 4 x 1, then the better 2 x 4\nround 1 of 2: run these trials"
    )
    assert f"\n  1 x {paths[3]}\nthen repeat this command with the results: --result {paths[0]}=SUCCESSES/1" in printed
    answers = iter(["0", "1", "x", "0", "1", "4", "2"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    table = tmp_path / "trials.csv"
    assert main(["choose", *paths, "--trials", "12", "--ask", "--results", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "expected a whole number from 0 to 1, got 'x'" in printed
    assert f"     5 of 5    57 to 100%  {paths[1]}\n" in printed
    assert f"-    0 of 1      0 to 79%  {paths[0]}\n" in printed
    assert f"verdict: take {paths[1]}: 5 of 5 trials succeeded" in printed
    assert printed.endswith(f"to export it: drol export {paths[1]} --step 12 --seed 0 --out bundle\n")
    assert main(["choose", *paths, "--trials", "12", "--results", str(table)]) == 0  # the file has everything
    assert f"verdict: take {paths[1]}" in capsys.readouterr().out
    assert main(["choose", *paths, "--trials", "12", "--result", f"{paths[0]}=1/1"]) == 0
    assert f"  1 x {paths[1]}\n" in capsys.readouterr().out
    assert main(["choose", *paths, "--ask"]) == 2


def test_only_the_last_steps(tmp_path):
    run = made_run(tmp_path / "a", {3: 100, 6: 50, 12: 40})
    assert [each.step for each in choose([run], last=2).candidates] == [6, 12]
    with pytest.raises(InputError, match="last is 0; it must be a whole number of at least 1"):
        choose([run], last=0)


def test_what_cannot_be_ranked_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no policy was evaluated; run episodes with `drol evaluate RUN`"):
        choose([made_run(tmp_path / "a")])
    other = made_run(tmp_path / "b", {6: 1}, task="other")
    with pytest.raises(InputError, match="the runs have 2 tasks"):
        choose([made_run(tmp_path / "c", {6: 1}), other])


def test_the_command_prints_the_ranking_and_what_to_type(tmp_path, capsys):
    made_run(tmp_path / "a", {6: 90, 12: 84})
    assert main(["choose", str(tmp_path / "a"), "--show", "1"]) == 0
    printed = capsys.readouterr().out
    assert "*          90.0  78.6 to 95.7          50             -" in printed
    assert "and 1 more" in printed
    assert printed.endswith(f"to export the first: drol export {tmp_path / 'a'} --step 6 --seed 0 --out bundle\n")
