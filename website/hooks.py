"""Hooks of MkDocs: add formulas, generated pages and files outside `docs` to the site."""

import ast
import sys
from pathlib import Path, PurePosixPath
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `website`, however mkdocs was started

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import methods, reference
from website.formulas import Formulas
from website.links import ROOT, outside_links, site_links, table_code
from website.notebooks import notebook_page

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Register the formula extension and replace stars in the navigation by generated pages."""
    config.markdown_extensions.append(Formulas())  # pyright: ignore[reportArgumentType]
    lists: dict[str, list[Any]] = {
        "methods/*": [f"methods/{name}.md" for name in methods.ALGORITHMS],
        "reference/*": [f"reference/{part}.md" for part in reference.packages()],
        "commands/*": [f"commands/{name}.md" for name in reference.COMMANDS],
        "examples/*": [f"examples/{path.stem}.md" for path in EXAMPLES],
        "notebooks/*": [f"notebooks/{path.stem}.md" for path in NOTEBOOKS],
    }
    config.nav = expand(config.nav, lists)
    return config


def expand(entries: Any, lists: dict[str, list[Any]]) -> list[Any]:
    """Return the navigation with every star replaced by its pages."""
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            expanded.append(
                {name: expand(value, lists) if isinstance(value, list) else value for name, value in entry.items()}
            )
        else:
            expanded += lists.get(entry, [entry])
    return expanded


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the files outside `docs` that documents link to."""
    pages = {f"reference/{part}.md": reference.name_page(part) for part in reference.packages()}
    pages |= {f"commands/{name}.md": reference.command_page(name) for name in reference.COMMANDS}
    pages |= {f"examples/{path.stem}.md": example_page(path) for path in EXAMPLES}
    pages |= {f"notebooks/{path.stem}.md": notebook_page(path) for path in NOTEBOOKS}
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    documents = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    wanted = {link for path in documents for link in outside_links((ROOT / path).read_text(), PurePosixPath(path))}
    for link in sorted(wanted):
        uri = f"files/{link}"
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / link)))
        if link.suffix == ".md":
            for below in outside_links((ROOT / link).read_text(), link) - wanted:
                files.append(File.generated(config, f"files/{below}", abs_src_path=str(ROOT / below)))
    return files


def example_page(path: Path) -> str:
    """Return an example as a page: the first line of its docstring, then its code."""
    text = path.read_text()
    title = (ast.get_docstring(ast.parse(text)) or path.stem).splitlines()[0]
    return f"# {path.name}\n\n{title}\n\n```python\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Resolve links into the site, and add the generated parts of the method pages."""
    uri = page.file.src_uri
    document = PurePosixPath(uri.removeprefix("files/")) if uri.startswith("files/") else PurePosixPath("docs", uri)
    name = PurePosixPath(uri).stem
    if uri == "methods/index.md":
        markdown = f"{markdown}\n\n{methods.overview()}"
    elif uri.startswith("methods/"):
        markdown = f"{markdown}\n\n{methods.generated(name)}"
    return site_links(table_code(markdown), document, uri)
