import pytest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.cli.main import main
from drol.errors import InputError
from drol.experiments.choose import choose
from drol.runs.rows import EvaluationRow, OfflineRow
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
    assert "2 of them (*) cannot be told from the first" in choice.verdict
    assert f"step 12, seed 0 of {tmp_path / 'a'}" in choice.verdict
    assert choice.candidates[0].interval == pytest.approx((78.6, 95.7), abs=0.1)  # Wilson, 45 of 50


def test_a_clear_winner_is_called_so(tmp_path):
    choice = choose([made_run(tmp_path / "a", {6: 98}), made_run(tmp_path / "b", {12: 10})])
    assert choice.tied == (choice.best,)
    assert choice.verdict == "the first is better than each of the others by this evidence"


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


def test_offline_values_of_other_discounts_are_not_ranked(tmp_path):
    run = made_run(tmp_path / "a", values={6: (-50.0, -10.0)})
    figures = {"value_low": -6.0, "value_high": -5.0}
    run.directory.log_offline_evaluation(OfflineRow(6, 0, 4, 0.9, 10, True, 1.0, figures))
    with pytest.raises(InputError, match=r"discount 0\.9 and 0\.99 do not compare; .* --discount 0\.99"):
        choose([tmp_path / "a"])


def test_only_the_last_steps(tmp_path):
    run = made_run(tmp_path / "a", {3: 100, 6: 50, 12: 40})
    assert [each.step for each in choose([run], last=2).candidates] == [6, 12]
    with pytest.raises(InputError, match="last is 0; it must be a whole number of at least 1"):
        choose([run], last=0)


def test_what_cannot_be_ranked_is_one_line(tmp_path):
    with pytest.raises(
        InputError, match=r"nothing is known of the policies in .*; play episodes with `drol evaluate RUN`"
    ):
        choose([made_run(tmp_path / "a")])
    other = made_run(tmp_path / "b", {6: 1}, task="other")
    with pytest.raises(InputError, match="the runs are of 2 tasks"):
        choose([made_run(tmp_path / "c", {6: 1}), other])


def test_the_command_prints_the_ranking_and_what_to_type(tmp_path, capsys):
    made_run(tmp_path / "a", {6: 90, 12: 84})
    assert main(["choose", str(tmp_path / "a"), "--show", "1"]) == 0
    printed = capsys.readouterr().out
    assert "*          90.0  78.6 to 95.7          50             -" in printed
    assert "and 1 more" in printed
    assert printed.endswith(f"to take the first: drol export {tmp_path / 'a'} --step 6 --seed 0 --out bundle\n")
