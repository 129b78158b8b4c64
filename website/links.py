"""Adapt documents to the site: links to files outside `docs`, and code in tables."""

import os
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def table_code(text: str) -> str:
    """Return a document whose code in tables has plain pipes: GitHub wants them escaped, Python-Markdown does not."""
    rows = re.compile(r"^\|.*$", re.M)
    return rows.sub(lambda row: re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row[0]), text)


def place_of(path: PurePosixPath) -> str:
    """Return where a file of the repository is in the site."""
    if path.parts[0] == "docs":
        return str(PurePosixPath(*path.parts[1:]).with_suffix(".md" if path.suffix == ".ipynb" else path.suffix))
    if path.parts[0] == "examples" and path.suffix == ".py":
        return f"examples/{path.stem}.md"
    return f"files/{path}"


def outside_links(text: str, document: PurePosixPath) -> set[PurePosixPath]:
    """Return the files of the repository, outside `docs` and `examples`, that a document links to."""
    found = (target(match[2], document) for match in LINK.finditer(text))
    return {path for path in found if path is not None and path.parts[0] not in ("docs", "examples")}


def target(link: str, document: PurePosixPath) -> PurePosixPath | None:
    """Return the file of the repository that a link of a document points to; None if it is an address."""
    if "://" in link or link.startswith("mailto:"):
        return None
    path = PurePosixPath(os.path.normpath(document.parent / link))
    return path if path.parts[:1] != ("..",) and (ROOT / path).is_file() else None


def site_links(text: str, document: PurePosixPath, page: str) -> str:
    """Return a document whose links lead to places in the site, as seen from its page."""

    def replace(match: re.Match[str]) -> str:
        path = target(match[2], document)
        if path is None:
            return match[0]
        return match[1] + os.path.relpath(place_of(path), PurePosixPath(page).parent) + match[3]

    return LINK.sub(replace, text)
