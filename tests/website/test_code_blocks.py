"""Every command and every piece of Python in the documents runs, at a small size, or says above it why not.

    <!-- not run
    drol bench: takes minutes; tests/experiments/bench runs it
    -->

before a block leaves out its commands that begin so; `all:` leaves out the whole block. Every document begins in a
folder with a few short runs; commands that only look at them are run for the first document that has them. A document
that has a test of its own says so: `<!-- run by tests/test_examples.py -->`.
"""

import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import drol
import drol.algorithms
from drol.cli.main import main

pytestmark = pytest.mark.usefixtures("quick_compile")
ROOT = Path(__file__).parents[2]
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/methods/*.md")})
BLOCK = re.compile(
    r"(?:<!-- not run\n(?P<reasons>.*?)-->\n+)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S
)
ELSEWHERE = re.compile(r"^<!-- run by (tests/[\w/.]+) -->$", re.MULTILINE)
LANGUAGES = {"sh", "python", "toml", "text", ""}

SIZES = {"steps": 20, "hidden_sizes": (16,), "batch_size": 16, "evaluation_episodes": 1, "evaluation_interval": 20}
SIZES |= {"log_interval": 10, "checkpoint_interval": 20}
PYTHON_SIZES = {"settings": SIZES, "evaluate": {"episodes": 1}, "evaluate_offline": {"updates": 2}}
SMALL = {
    "train": [f"--{name.replace('_', '-')}={value if name != 'hidden_sizes' else 16}" for name, value in SIZES.items()],
    "evaluate": ["--episodes=1"],
    "evaluate --offline": ["--updates=2"],
    "train --online-steps": ["--online-steps=2"],
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a document, and why some of it is not run."""

    language: str
    text: str
    reasons: dict[str, str]

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]

    def why_not(self, line: str) -> str | None:
        return next((why for start, why in self.reasons.items() if start == "all" or line.startswith(start)), None)


def blocks_of(path: Path) -> list[Block]:
    text, found = path.read_text(), []
    if elsewhere := ELSEWHERE.search(text):
        assert (ROOT / elsewhere[1]).is_file(), elsewhere[1]
        return []
    for match in BLOCK.finditer(text):
        reasons = [line.split(": ", 1) for line in (match["reasons"] or "").splitlines() if line.strip()]
        found.append(Block(match["language"], match["text"], dict(reasons)))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, quick_compile):
    """Short runs and files by the names that documents use."""
    path = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setenv("DROL_DATA", "datasets")
        patch.setattr(drol.algorithms, "REGISTERED", {})
        for name, sizes in PYTHON_SIZES.items():
            patch.setattr(drol, name, smaller(getattr(drol, name), sizes), raising=False)
        drol.train(drol.settings(preset="laptop"), "runs/maze", quiet=True)
        drol.train(drol.settings(algorithm="iql", preset="laptop"), "runs/iql", quiet=True)
        shutil.copytree("runs/maze", "runs/demo")
        main(["results", "export", "runs/iql", "--out", "cluster.csv"])
        main(["results", "export", "runs/maze", "--out", "laptop.csv"])
        write_logs(path)
        yield path


def smaller(function, sizes):
    return lambda *arguments, **changes: function(*arguments, **{**changes, **sizes})


def write_logs(path: Path) -> None:
    """Write episodes of ten steps with the names that LeRobot and D4RL use."""
    generator = np.random.default_rng(0)
    observation, action = generator.normal(size=(60, 2)), generator.uniform(-1, 1, (60, 1))
    last = np.arange(60) % 10 == 9
    with h5py.File(path / "log.hdf5", "w") as file:
        arrays = {"observations": observation, "actions": action, "rewards": -np.ones(60), "terminals": last}
        for name, values in (arrays | {"timeouts": np.zeros(60, bool)}).items():
            file[name] = values
    columns = {"observation.state": list(observation), "action": list(action), "next.reward": -np.ones(60)}
    columns |= {"episode_index": np.arange(60) // 10, "terminal": last}
    pyarrow.parquet.write_table(pyarrow.table(columns), path / "log.parquet")


DONE: set[str] = set()
LOOKING = ("algorithms", "choose", "compare", "evaluate", "report")


def run_command(line: str) -> None:
    """Run a command of a document; those of `drol` in this process, with flags that make it small."""
    words = shlex.split(line.replace("./run ", "drol ", 1), comments=True)
    assert words[0] == "drol", f"{line}: mark why it is not run"
    key = shlex.join(words)
    if key in DONE and words[1] in LOOKING:
        return
    DONE.add(key)
    command, flags = words[1], words[2:]
    for name, extra in SMALL.items():
        start, *needed = name.split()
        if start == command and all(flag in flags for flag in needed) and (needed or "--offline" not in flags):
            flags = [*flags, *extra]

    assert main([command, *flags]) == 0, line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_tells_to_run_runs(path, folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks_of(path):
        assert block.language in LANGUAGES, block.language
        if block.language == "sh":
            for line in block.lines:
                if block.why_not(line) is None:
                    run_command(line)
        elif block.language == "python" and block.why_not("") is None:
            exec(compile(block.text, str(path), "exec"), names)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "":
            assert not re.search(r"^(drol|\./run) \S", block.text, re.M), "commands belong into a block of sh"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_reasons_are_about_commands_that_are_there(path):
    for block in blocks_of(path):
        for start, why in block.reasons.items():
            assert why
            assert start == "all" or any(line.startswith(start) for line in block.lines), start
            for test in re.findall(r"tests/[\w/.]+", why):
                assert (ROOT / test).exists(), test
    assert path.read_text().count("<!-- not run") == sum(bool(block.reasons) for block in blocks_of(path))
