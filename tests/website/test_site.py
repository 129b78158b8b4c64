"""The documentation site: built in strict mode, complete, and at home in a browser without a network."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browser import visit

import drol
from drol.algorithms import ALGORITHMS
from drol.cli.main import COMMANDS, main
from drol_reproduction.published import family_cells

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `./run docs` does; warnings are errors."""
    path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(path)]
    here = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return path


def page(site: Path, name: str) -> str:
    return (site / name / "index.html").read_text()


def test_every_public_name_is_in_the_reference(site):
    anchors = {
        anchor
        for path in (site / "reference").rglob("*.html")
        for anchor in re.findall(r'id="drol\.(\w+)"', path.read_text())
    }
    assert set(drol.__all__) - anchors == {"ALGORITHMS"}  # a dictionary, which has no docstring; named all the same
    assert "drol.ALGORITHMS" in page(site, "reference/algorithms")
    assert "the same call again" in page(site, "reference/training")  # from the docstring of drol.train


def test_every_command_has_its_help(site, capsys):
    for name in COMMANDS:
        assert f"usage: drol {name}" in page(site, f"commands/{name}"), name
    for name in ("data import", "paper plan", "results merge", "sweep run"):
        assert f"usage: drol {name}" in page(site, f"commands/{name.split()[0]}"), name
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    last = capsys.readouterr().out.strip().splitlines()[-1].split()[-1]
    assert last in page(site, "commands/serve")


def test_every_method_has_its_settings_and_results(site):
    for name, kind in ALGORITHMS.items():
        text = page(site, f"methods/{name}")
        for field in ("learning_rate", "batch_size"):
            assert field in text, (name, field)
        assert "<math" in text, name
        assert kind.__name__ in text
    mean, deviation = family_cells()["antmaze-giant", "drol*"]
    assert f"{mean:.0f}±{deviation:.0f}" in page(site, "methods/drol")
    assert "do not have this method" in page(site, "methods/gfp")


def test_formulas_need_no_script_and_nothing_is_left_of_them(site):
    for path in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", path.read_text(), flags=re.S)
        assert "$$" not in text, path
        assert not re.search(r"\\(?:lVert|mathbb|operatorname|arg)", text), path


def test_what_a_page_loads_is_beside_it(site):
    for path in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source|video)\b[^>]*>", path.read_text()):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag) or 'rel="canonical"' in tag, (path, tag)


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


PAGES = ("", "start/", "understand/", "methods/drol/", "commands/train/", "reference/training/", "questions/", "data/")


@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), (1400, "light")])
def test_pages_open_in_a_browser_without_errors_or_a_network(address, width, scheme):
    with visit(address, width, scheme=scheme) as seen:
        for name in (*PAGES, "routing-lab/"):
            seen.page.goto(address + name)
            assert seen.page.locator("h1").count() == 1
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert all(
                picture for picture in seen.page.evaluate("[...document.images].map((each) => each.naturalWidth)")
            ), name
        seen.page.click("[data-action=step]")
        assert "After 1 step:" in seen.page.locator(".lab-sentence").inner_text()
        colours = seen.page.evaluate("getComputedStyle(document.querySelector('#lab')).getPropertyValue('--lab-paper')")
        assert colours.strip() == {"dark": "#171c26", "light": "#ffffff"}[scheme]
        if width == 1400:
            seen.page.goto(f"{address}?q=handoff")  # the text in the search field
            seen.page.wait_for_selector(".md-search-result__link", state="attached")
        assert not seen.errors
        assert all(each.startswith((address, "blob:", "data:")) for each in seen.requests), seen.requests
