"""Convert formulas in Markdown ($x$ inline, $$x$$ as a block) to MathML, which browsers draw without a script."""

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

BLOCK = r"\$\$(.+?)\$\$"
INLINE = r"(?<![\\\w$])\$(?!\s)([^$\n]+?)(?<![\s\\])\$(?![\w$])"


class Formula(InlineProcessor):
    """Turns LaTeX between dollars into MathML."""

    def __init__(self, pattern: str, markdown: Markdown, display: str):
        super().__init__(pattern, markdown)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[ElementTree.Element, int, int]:  # noqa: ARG002, N802
        return to_mathml(m[1], self.display), m.start(0), m.end(0)


def to_mathml(latex: str, display: str = "inline") -> ElementTree.Element:
    """Return a formula as an element `math`."""
    text = re.sub(r'\sxmlns="[^"]*"', "", convert(latex.strip(), display=display))
    element = ElementTree.fromstring(text)
    for operator in element.iter("mo"):
        if operator.text in ("|", "\u2016"):  # bars of one height, close to their content
            operator.attrib |= {"stretchy": "false", "lspace": "0", "rspace": "0"}
        elif operator.text == "*":
            operator.text = "\u2217"  # a low star, which a superscript raises once
    return as_it_is(element)


def as_it_is(element: ElementTree.Element) -> ElementTree.Element:
    """Keep Markdown from reading stars and underscores inside a formula."""
    for each in element.iter():
        if each.text:
            each.text = AtomicString(each.text)
    return element


class Formulas(Extension):
    """Reads formulas after code in backquotes, and before backslashes are taken for escapes."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(Formula(f"(?s){BLOCK}", md, "block"), "block formula", 186)
        md.inlinePatterns.register(Formula(INLINE, md, "inline"), "formula", 185)
