"""Links of documents lead to places in the site."""

import sys
from pathlib import Path, PurePosixPath

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from website.links import outside_links, site_links, table_code


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("results.md#scores", "results.md#scores"),
        ("../results/demo.csv", "files/results/demo.csv"),
        ("../examples/own_data.py", "examples/own_data.md"),
        ("../README.md#install", "files/README.md#install"),
        ("https://example.org/a", "https://example.org/a"),
        ("nowhere.md", "nowhere.md"),  # strict mode names it
        ("../../../etc/passwd", "../../../etc/passwd"),
    ],
)
def test_a_link_of_a_document(link, expected):
    assert site_links(f"[words]({link})", PurePosixPath("docs/data.md"), "data.md") == f"[words]({expected})"


def test_links_are_relative_to_the_page():
    text = site_links("[words](../results.md)", PurePosixPath("docs/methods/drol.md"), "methods/drol.md")
    assert text == "[words](../results.md)"
    text = site_links("[words](../docs/data.md)", PurePosixPath("runtime/README.md"), "files/runtime/README.md")
    assert text == "[words](../../data.md)"


def test_only_files_of_the_repository_outside_docs_are_added():
    text = "[a](../results/demo.csv) [b](results.md) [c](../examples/own_data.py) [d](https://e.org) [e](../../x)"
    assert outside_links(text, PurePosixPath("docs/data.md")) == {PurePosixPath("results/demo.csv")}


def test_code_in_tables_has_no_backslashes():
    assert table_code("| `\\|a\\|` | b \\| c |\n`\\|`") == "| `|a|` | b \\| c |\n`\\|`"
