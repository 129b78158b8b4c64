"""The template of self-contained pages: title, headline, sections with figures and tables, footer.

A page may have a script and data for it. Its Content-Security-Policy allows no other script and no loading.
"""

import base64
import hashlib
import html
import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from matplotlib.figure import Figure

from drol.reports.figure_style import GRID, INK, MUTED, SERIES, svg_of

# Colours of figures and their CSS variables, so that figures follow the page's light or dark scheme.
THEME = {"#ffffff": "--paper", INK: "--ink", MUTED: "--muted", GRID: "--line", "#c9d1db": "--wall"}
THEME |= {colour: f"--s{number}" for number, colour in enumerate(SERIES)}
CONTENTS = 4  # a page with at least this many sections has a table of contents


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    caption: str  # text between backquotes is code
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by name of their file
    content: str = ""  # HTML below the caption


def page_html(
    title: str, headline: str, sections: Sequence[Section], foot: str, scripts: Sequence[str] = (), data: Any = None
) -> str:
    """Return a page.

    Args:
        title: Its title, as text.
        headline: HTML.
        sections: The sections.
        foot: HTML of the footer.
        scripts: JavaScript, in the order in which it runs.
        data: The content of the element `data`, for the scripts.
    """
    template = string.Template(asset("drol.reports.html", "page.html"))
    allowed = " ".join(f"'sha256-{digest(each)}'" for each in scripts) or "'none'"
    data = f'<script type="application/json" id="data">{data_json(data)}</script>\n' if scripts else ""
    links = " ".join(f'<a href="#{name_of(each.title)}">{html.escape(each.title)}</a>' for each in sections)
    return template.substitute(
        title=html.escape(title),
        style=asset("drol.reports.html", "page.css"),
        allowed=allowed,
        contents=f"<nav aria-label='sections'>{links}</nav>" if len(sections) >= CONTENTS else "",
        headline=headline,
        sections="\n".join(section_html(section) for section in sections),
        foot=foot,
        scripts=data + "\n".join(f"<script>{each}</script>" for each in scripts),
    )


def section_html(section: Section) -> str:
    """Return a section as HTML, including its figures."""
    images = "".join(
        f"<figure class='{name}'>{themed(svg_of(each))}</figure>" for name, each in section.figures.items()
    )
    images = f"<div class='figures'>{images}</div>" if images else ""
    caption = f"<p>{code_html(section.caption)}</p>" if section.caption else ""
    head = f"<section id='{name_of(section.title)}'><h2>{html.escape(section.title)}</h2>"
    return f"{head}{caption}{section.content}{images}</section>"


def name_of(title: str) -> str:
    """Return the HTML id of a section."""
    return re.sub("[^a-z]+", "-", title.lower()).strip("-")


def code_html(text: str) -> str:
    """Convert text to HTML; text between backquotes becomes code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


def themed(svg: str) -> str:
    """Replace the colours of a figure by the page's CSS variables."""
    return re.sub("#[0-9a-f]{6}", lambda found: f"var({THEME[found[0]]})" if found[0] in THEME else found[0], svg)


def asset(package: str, name: str) -> str:
    """Return a script, style sheet or template of a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def digest(script: str) -> str:
    """Return the hash of a script for a Content-Security-Policy."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def data_json(data: Any) -> str:
    """Return data as JSON that cannot close its HTML element; NaN is excluded by `plain_number`."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
