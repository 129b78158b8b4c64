"""Every command and every piece of Python in the documents runs at a small size, or not_run.toml says why not.

Every document begins in a folder with a few short runs. Commands that only read them run for the first document that
has them.
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

ROOT = Path(__file__).parents[2]
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/methods/*.md")})
BLOCK = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.M | re.S)
NOT_RUN = tomllib.loads(Path(__file__).with_name("not_run.toml").read_text())
LANGUAGES = {"sh", "python", "toml", "text", "bibtex", ""}

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
    """A fenced block of a document, and the reasons why some of its commands are not run."""

    language: str
    text: str
    reasons: dict[str, str]  # start of a command -> reason
    reason: str | None  # why none of it is run

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]

    def why_not(self, line: str) -> str | None:
        return self.reason or next((why for start, why in self.reasons.items() if line.startswith(start)), None)


def blocks_of(path: Path) -> list[Block]:
    name = str(path.relative_to(ROOT))
    if name in NOT_RUN["elsewhere"]:
        return []
    commands, whole = NOT_RUN["commands"].get(name, {}), NOT_RUN["blocks"].get(name, {})
    found = []
    for match in BLOCK.finditer(path.read_text()):
        first = next((line for line in match["text"].splitlines() if line.strip() and not line.startswith("#")), "")
        found.append(Block(match["language"], match["text"], commands, whole.get(first.split(" #")[0].strip())))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
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


def test_reasons_are_about_commands_that_the_documents_have():
    for page in {*NOT_RUN["commands"], *NOT_RUN["blocks"], *NOT_RUN["elsewhere"]}:
        assert (ROOT / page).exists(), page
    for page, reasons in NOT_RUN["commands"].items():
        lines = [line for block in blocks_of(ROOT / page) for line in block.lines]
        for start in reasons:
            assert any(line.startswith(start) for line in lines), (page, start)
    for page, reasons in NOT_RUN["blocks"].items():
        assert {block.reason for block in blocks_of(ROOT / page)} >= {*reasons.values()}, page


def test_tests_that_the_reasons_name_exist():
    tests = [*NOT_RUN["elsewhere"].values()]
    for page in (*NOT_RUN["commands"].values(), *NOT_RUN["blocks"].values()):
        tests += [test for reason in page.values() for test in re.findall(r"tests/[\w/.]+", reason)]
    for test in tests:
        assert (ROOT / test).exists(), test
