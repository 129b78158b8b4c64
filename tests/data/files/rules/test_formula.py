import numpy as np
import pytest
from step_files import refusal

from drol.data.files.rules.formula import Formula

X, Y = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0, 4.0], [0.0, 1.0], [6.0, 8.0]])
VALUES = {"x": X, "p": Y, "p[1]": Y[:, 1:], "obs.state": Y, "a b": X}
FOLLOWING = {name: np.concatenate((array[1:], array[-1:])) for name, array in VALUES.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", [1, 2, 4]),
        ("-2 * x + 1", [-1, -3, -7]),
        ("x ** 2 / 2", [0.5, 2, 8]),
        ("norm(p)", [5, 1, 10]),
        ("sum(obs.state)", [7, 1, 14]),
        ("p[1] - x", [3, -1, 4]),
        ("'a b' * 1", [1, 2, 4]),
        ("x > 1 and not x > 3", [0, 1, 0]),
        ("x == 2 or x == 4", [0, 1, 1]),
        ("10 if x <= 1 else x", [10, 2, 4]),
        ("min(x, 2, 1.5)", [1, 1.5, 1.5]),
        ("max(x, 2)", [2, 2, 4]),
        ("abs(x - 3) + sqrt(x) * 0", [2, 1, 1]),
        ("next(x) - x", [1, 2, 0]),
        ("norm((x - 1, p[1] - 4))", [0, np.sqrt(10), 5]),
        ("next(norm(p))", [1, 10, 10]),
        ("x * True", [1, 2, 4]),
    ],
)
def test_formulas_are_computed(text, expected):
    formula = Formula.parse(text)
    np.testing.assert_allclose(formula.evaluate(VALUES, FOLLOWING), expected)
    assert formula.needs_next == ("next" in text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('true')", "is not allowed"),
        ("x.__class__()", "is not allowed"),
        ("open(x)", "is not allowed"),
        ("[y for y in x]", "is not allowed"),
        ("lambda: x", "is not allowed"),
        ("x[y]", "is not allowed"),
        ("x ** x", "is not allowed"),
        ("x ** 1000", "is not allowed"),
        ("x < 1 < 2", "is not allowed"),
        ("x if (y := 1) else 2", "is not allowed"),
        ("f'{x}'", "is not allowed"),
        ("abs(x, x)", "is not allowed"),
        ("max(x)", "is not allowed"),
        ("norm(x, axis=1)", "is not allowed"),
        ("1e999 * x", "is not allowed"),
        ("x +", "cannot be read"),
        ("x; y", "cannot be read"),
        ("", "cannot be read"),
        ("1 + 2", "names no column"),
        ("x" + " + x" * 1000, "letters; at most"),
        ("-" * 100 + "x", "nested more than"),
    ],
)
def test_anything_else_is_refused_and_not_run(text, words):
    assert words in refusal(Formula.parse, text)


def test_a_formula_gives_one_number_for_a_step():
    assert "gives 2 numbers for a step; use norm(...)" in refusal(Formula.parse("p + 1").evaluate, VALUES, FOLLOWING)
    three = VALUES | {"q": np.ones((3, 3))}
    assert "vectors of 2 and 3 numbers" in refusal(Formula.parse("sum(p * q)").evaluate, three, three)


def test_names_are_those_of_columns():
    assert Formula.parse("a.b[3] + 'c/d'[1] - a.b[3] * e").names == ("a.b[3]", "c/d[1]", "e")
