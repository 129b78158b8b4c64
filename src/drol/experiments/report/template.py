"""Our pages: a title, a headline, sections with figures and tables, a foot; each is one file that needs no other."""

import html
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from matplotlib.figure import Figure

from drol.experiments.report.style import svg_of


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    caption: str  # text between backquotes is code
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by the name of their file
    content: str = ""  # HTML below the caption


def page_html(title: str, headline: str, sections: Sequence[Section], foot: str) -> str:
    """Return a page; the title is text, headline and foot are HTML."""
    template = string.Template(resources.files("drol.experiments.report").joinpath("page.html").read_text())
    return template.substitute(
        title=html.escape(title),
        headline=headline,
        sections="\n".join(section_html(section) for section in sections),
        foot=foot,
    )


def section_html(section: Section) -> str:
    """Return a section as HTML, its figures within."""
    images = "".join(f"<figure class='{name}'>{svg_of(figure)}</figure>" for name, figure in section.figures.items())
    text = f"<h2>{html.escape(section.title)}</h2><p>{code_html(section.caption)}</p>{section.content}"
    return f"<section>{text}<div class='figures'>{images}</div></section>"


def code_html(text: str) -> str:
    """Return text as HTML in which what is between backquotes is code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))
