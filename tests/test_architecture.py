"""The tree is what docs/architecture.md says."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import drol

ROOT = Path(__file__).parents[1]


def test_imports_go_one_way():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_public_name_is_there_and_explained():
    assert sorted(drol.__all__) == sorted(drol.PUBLIC)
    for name in drol.__all__:
        value = getattr(drol, name)
        assert isinstance(value, dict) or value.__doc__, name


def test_every_source_module_says_what_it_is():
    for path in (ROOT / "src" / "drol").rglob("*.py"):
        if path.stat().st_size:
            name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
            assert importlib.import_module(name).__doc__, name


def test_no_file_outgrows_one_purpose():
    for path in (ROOT / "src" / "drol").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 350, path


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_and_paths_in_the_documents_exist(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_nothing_names_a_registry_or_a_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    pattern = re.compile(r"https?://[^ \")]+/(simple|packages|debian)(/|$)|index-url *=|/(work|farm|root)/")
    for name in tracked:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".txt", ".cff", ".html", "") and path.is_file():
            assert not pattern.search(path.read_text(errors="ignore").replace(pattern.pattern, "")), name
