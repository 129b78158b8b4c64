"""Formulas become MathML; all else that has dollars in it stays as it is."""

import sys
from pathlib import Path

import pytest
from markdown import Markdown

sys.path.insert(0, str(Path(__file__).parents[2]))

from website.formulas import Formulas


def html(text):
    return Markdown(extensions=[Formulas()]).convert(text)


def test_a_formula_in_a_line_and_one_of_its_own():
    line = html("the weight $w_c$ and *more*")
    assert '<math display="inline">' in line
    assert "<mi>w</mi><mi>c</mi>" in line.replace("\n", "")
    assert "<em>more</em>" in line
    assert '<math display="block">' in html("so\n\n$$ a * b * c \\le \\lVert x \\rVert $$\n\nholds")


def test_bars_have_one_height():
    text = html("$\\lVert x^2 \\rVert$ and $\\lvert y \\rvert$")
    assert text.count('stretchy="false"') == 4


def test_stars_underscores_and_backslashes_belong_to_the_formula():
    text = html("$a_1 * b_2 * c_3 \\, d$")
    assert "<em>" not in text
    assert "\\" not in text


@pytest.mark.parametrize("text", ["`$HOME` and `$PATH`", "costs 5$ or 6$", "$ not one $", "\\$x\\$", "a$b$c"])
def test_other_dollars_stay(text):
    assert "<math" not in html(text)
