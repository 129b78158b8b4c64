import numpy as np
import pytest
from step_files import refusal

from drol.data.files.episodes import Assembler
from drol.data.files.options import ReadingOptions
from drol.data.files.rules.formula import Formula
from drol.data.files.rules.rewards import Goal, RewardRule

STEPS = {
    "observation": np.arange(6.0)[:, None],
    "action": np.zeros((6, 1)),
    "formula": np.arange(6.0)[:, None] ** 2,
    "episode": np.array([0, 0, 0, 1, 1, 1]),
}


def rows_of(rule, pieces=1, **reading):
    """The rows of the steps, given in so many pieces."""
    assembler = Assembler(dict.fromkeys(STEPS, "x"), ReadingOptions(ends="timeout", **reading), reward_rule=rule)
    parts = [
        assembler.add({name: array[part] for name, array in STEPS.items()})
        for part in np.array_split(np.arange(6), pieces)
    ]
    parts = [part for part in (*parts, assembler.end_file(), assembler.finish()) if part]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, assembler


@pytest.mark.parametrize("pieces", [1, 2, 6])
@pytest.mark.parametrize(
    ("text", "expected"), [("x", [0, 1, 9, 16]), ("next(x) - x", [1, 3, 7, 9]), ("x + 0 * next(x)", [0, 1, 9, 16])]
)
def test_a_reward_is_computed_from_the_row_of_its_action(text, expected, pieces):
    rows, assembler = rows_of(RewardRule(Formula.parse(text), None, {"x": slice(0, 1)}), pieces)
    np.testing.assert_array_equal(rows["reward"][~rows["last"]], expected)
    assert assembler.names["reward"] == f"the formula {text}"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_goal_pays_nothing_when_it_is_reached_and_ends_what_is_worth(pieces):
    goal = Goal.parse(["x=9"], 8)
    rows, assembler = rows_of(RewardRule(goal.formula, goal, {"x": slice(0, 1)}), pieces)
    transitions = ~rows["last"]
    np.testing.assert_array_equal(rows["reward"][transitions], [-1, 0, 0, 0])  # 0 and 25 are too far, 1 to 16 are not
    np.testing.assert_array_equal(rows["continues"][transitions], [1, 0, 0, 0])
    assert assembler.counts.reached == 3
    assert str(goal).startswith("0 within 8 of the goal (x = 9), else -1")


def test_a_formula_that_is_not_finite_is_refused_with_its_row():
    rule = RewardRule(Formula.parse("1 / (x - 1)"), None, {"x": slice(0, 1)})
    assert "the formula 1 / (x - 1) has values that are NaN, infinite" in refusal(rows_of, rule)
    assert "the first in step 1" in refusal(rows_of, rule)


@pytest.mark.parametrize(
    ("texts", "radius", "words"),
    [
        (["x"], 1.0, "--goal has 'x'; it must be NAME=VALUE"),
        (["x=a"], 1.0, "--goal has 'x=a'"),
        (["x=nan"], 1.0, "--goal has 'x=nan'"),
        (["=1"], 1.0, "--goal has '=1'"),
        (["x=1"], None, "--goal needs --goal-radius"),
        (["x=1"], -1.0, "--goal-radius is -1"),
        ([], 1.0, "the goal is empty"),
    ],
)
def test_a_goal_that_is_none_is_refused(texts, radius, words):
    assert words in refusal(Goal.parse, texts, radius)


def test_success_is_a_reward():
    steps = {"observation": np.zeros((4, 1)), "action": np.zeros((4, 1)), "terminal": np.array([0, 0, 0, 1])}
    steps |= {"success": np.array([False, False, True, True])}
    options = ReadingOptions(ends="terminal", fill_reward="success")
    assembler = Assembler({name: name for name in steps}, options)
    rows = [assembler.add(steps), assembler.end_file(), assembler.finish()]
    rewards = np.concatenate([part["reward"][~part["last"]] for part in rows if part])
    np.testing.assert_array_equal(rewards, [0, 0, 1, 1])
    del steps["success"]
    assert "no column says it; name it with --success" in refusal(Assembler, dict.fromkeys(steps, "x"), options)


def test_only_one_rule_gives_the_reward():
    assert "only one of" in refusal(lambda: ReadingOptions(formula="x", fill_reward="end"))
    assert "only one of" in refusal(lambda: ReadingOptions(formula="x", goal=("x=1",), goal_radius=1))
    assert "--goal-radius is given without --goal" in refusal(lambda: ReadingOptions(goal_radius=1))
