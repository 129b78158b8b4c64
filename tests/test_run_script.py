"""`./run` in a copy of the checkout, with stand-ins for Python and uv: which of them it picks, what it installs."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = ["cat", "chmod", "cksum", "cp", "cut", "dirname", "grep", "mkdir", "rm", "sed"]

# Answers `-c` as a Python of that version does, makes a virtual environment of itself, and writes down its other calls.
PYTHON = """#!/bin/sh
case "$1 ${{2:-}}" in
"-c "*) exec {real} -I -S -c "import sys; sys.version_info = {version}; $2" ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "{folder}/drol" "$3/bin/drol" ;;
esac
echo "python{version[0]}.{version[1]} $*" >>"{folder}/calls"
echo "something that is not the answer of the command"
"""
# Makes a virtual environment with the Python at a given path, or with uv's own Python.
UV = """#!/bin/sh
echo "uv $*" >>"{folder}/calls"
if [ "$1" = venv ]; then
    for last; do true; done
    case "$4" in
    /*) "$4" -m venv "$last" >/dev/null ;;
    *) [ -x "{folder}/python-of-uv" ] || {{ echo "error: no network"; echo "  cause: dns"; exit 2; }} >&2
       "{folder}/python-of-uv" -m venv "$last" >/dev/null ;;
    esac
fi
"""
DROL = """#!/bin/sh
if [ "$1" = --help ]; then printf 'usage: drol\\n\\ntrain:\\n  train   trains\\n\\nfirst steps:\\n'; fi
echo "drol $*" >>"{folder}/calls"
"""


class Checkout:
    """A copy of what `./run` reads, and a PATH that holds nothing but the stand-ins and a few tools."""

    def __init__(self, folder: Path):
        self.folder = folder / "a folder"
        self.path = folder / "bin"
        self.folder.mkdir()
        self.path.mkdir()
        projects = [f"{folder}pyproject.toml" for folder in ("", "runtime/", "reproduction/")]
        for name in ["run", "constraints.txt", *projects]:
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        for name in TOOLS:
            (self.path / name).symlink_to(shutil.which(name) or pytest.fail(f"no {name} on this machine"))
        self.write(self.folder / "drol", DROL.format(folder=self.folder))

    def write(self, path: Path, script: str) -> None:
        path.write_text(script)
        path.chmod(0o755)

    def add_python(self, name: str, minor: int) -> None:
        path = self.folder / name if name == "python-of-uv" else self.path / name
        self.write(path, PYTHON.format(folder=self.folder, real=sys.executable, version=(3, minor, 0)))

    def add_uv(self) -> None:
        self.write(self.path / "uv", UV.format(folder=self.folder))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "run", *arguments],
            env={"PATH": str(self.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, pattern: str) -> list[str]:
        path = self.folder / "calls"
        return [line for line in path.read_text().splitlines() if re.search(pattern, line)] if path.exists() else []


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {line.split("==")[0]: line.split(" ")[0] for line in lines}


@pytest.mark.parametrize("too_old_or_new", [10, 15])
def test_one_line_says_which_python_to_install(checkout, too_old_or_new):
    checkout.add_python("python3", too_old_or_new)
    answer = checkout.run("train")
    assert answer.returncode != 0
    assert answer.stdout == ""
    assert len(answer.stderr.splitlines()) == 1
    assert "install Python 3.12" in answer.stderr
    assert not (checkout.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("installed", "best"),
    [
        ([("python3.13", 13), ("python3.12", 12), ("python3.11", 11), ("python3", 13)], 12),
        ([("python3.13", 13), ("python3.11", 11)], 11),
        ([("python3.14", 14), ("python3.13", 13)], 13),
        ([("python3", 14)], 14),
        ([("python3", 10), ("python", 12)], 12),
    ],
)
@pytest.mark.parametrize("with_uv", [False, True])
def test_the_python_that_suits_best_is_picked(checkout, installed, best, with_uv):
    for name, minor in installed:
        checkout.add_python(name, minor)
    if with_uv:
        checkout.add_uv()
    answer = checkout.run("train", "--steps", "3")
    assert answer.returncode == 0, answer.stderr
    assert [call.split(" ")[0] for call in checkout.calls("-m venv")] == [f"python3.{best}"]
    assert checkout.calls("^drol") == ["drol train --steps 3"]
    assert answer.stdout == ""


def test_uv_brings_a_python_where_none_suits(checkout):
    checkout.add_python("python3", 10)
    checkout.add_python("python-of-uv", 12)
    checkout.add_uv()
    answer = checkout.run("train")
    assert answer.returncode == 0, answer.stderr
    assert [call.split(" ")[:5] for call in checkout.calls("^uv venv")] == [
        ["uv", "venv", "--quiet", "--python", "3.12"],
    ]
    assert checkout.calls("^drol") == ["drol train"]


def test_one_line_where_uv_cannot_fetch_a_python(checkout):
    checkout.add_uv()
    answer = checkout.run("train")
    assert answer.returncode != 0
    assert len(answer.stderr.splitlines()) == 1
    assert "install Python 3.12" in answer.stderr


@pytest.mark.parametrize("with_uv", [False, True])
@pytest.mark.parametrize(("minor", "apart"), [(11, False), (12, False), (13, True), (14, True)])
def test_ogbench_comes_without_labmaze_from_python_3_13_on(checkout, minor, apart, with_uv):
    checkout.add_python(f"python3.{minor}", minor)
    if with_uv:
        checkout.add_uv()
    assert checkout.run("train").returncode == 0
    installs = checkout.calls("pip install")
    assert all(call.startswith("uv pip" if with_uv else f"python3.{minor} -m pip") for call in installs)
    folders = (f"{checkout.folder}[all]", f"{checkout.folder}/runtime", f"{checkout.folder}/reproduction")
    assert installs[0].endswith(" ".join(f"--editable {folder}" for folder in folders))
    if apart:
        assert len(installs) == 2
        assert installs[1].endswith(f"--no-deps {pins()['dm-control']} {pins()['ogbench']}")
    else:
        assert len(installs) == 1
    assert "labmaze" not in " ".join(installs)


def test_it_is_set_up_once(checkout):
    checkout.add_python("python3.12", 12)
    assert "installing drol[all]" in checkout.run("train").stderr
    assert checkout.run("train").stderr == ""
    assert len(checkout.calls("pip install")) == 1
    (checkout.folder / "constraints.txt").write_text("numpy==2.4.6\n")
    assert "installing drol[all]" in checkout.run("train").stderr
    assert len(checkout.calls("-m venv")) == 1


def test_the_demo_installs_what_it_needs_unless_a_larger_extra_is_there(checkout):
    checkout.add_python("python3.12", 12)
    assert "installing drol[demo]" in checkout.run("demo", "--seed", "1").stderr
    assert checkout.calls("^drol") == ["drol demo --seed 1"]
    assert "installing drol[all]" in checkout.run("train").stderr
    (checkout.folder / ".venv" / ".installed-demo").unlink()
    assert checkout.run("demo").stderr == ""


def test_the_storm_runs_in_the_same_environment(checkout):
    checkout.add_python("python3.12", 12)
    assert checkout.run("storm", "--minutes", "1").returncode == 0
    assert checkout.calls("-m storm") == ["python3.12 -m storm --minutes 1"]


def test_quick_tests_leave_out_the_slow_ones(checkout):
    checkout.add_python("python3.12", 12)
    checkout.run("test")  # makes the environment, then misses ruff
    for name in ("ruff", "pyright"):
        checkout.write(checkout.folder / ".venv" / "bin" / name, "#!/bin/sh\n")
    for flags in (["--quick", "tests/data"], ["tests/data"]):
        answer = checkout.run("test", *flags)
        assert answer.returncode == 0, answer.stderr
    quick, complete = checkout.calls("-m pytest")
    assert quick.endswith(" -m not slow tests/data")
    assert "slow" not in complete
    assert complete.endswith(" tests/data")


def test_docs_are_served_by_the_same_environment(checkout):
    checkout.add_python("python3.12", 12)
    (checkout.path / "env").symlink_to(shutil.which("env") or pytest.fail("no env on this machine"))
    answer = checkout.run("docs", "--dev-addr", "127.0.0.1:8001")
    assert answer.returncode == 0, answer.stderr
    assert f"--editable {checkout.folder}[docs] " in checkout.calls("pip install")[0]
    assert checkout.calls("-m mkdocs") == ["python3.12 -m mkdocs serve --dev-addr 127.0.0.1:8001"]


def test_help_lists_the_commands_once_set_up(checkout):
    checkout.add_python("python3.12", 12)
    assert "trains" not in checkout.run("--help").stdout
    checkout.run("train")
    assert "  train   trains\n" in checkout.run("--help").stdout


def needed(extra: str, python: str) -> set[str]:
    """The names of all packages of an extra of drol on a Python, by the metadata of what is installed here."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    extras = PROJECT["optional-dependencies"]
    waiting = [(Requirement(line), "") for line in PROJECT["dependencies"] + extras[extra]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, its_extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({**environment, "extra": its_extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in {"", *requirement.extras} - {key for seen_name, key in seen if seen_name == name}:
            seen.add((name, wanted))
            lines = extras[wanted] if name == "drol" and wanted else requirements(name)
            waiting += [(Requirement(line), "" if name == "drol" else wanted) for line in lines]
    return {name for name, _ in seen} - {"drol", "drol-runtime"}


def requirements(name: str) -> list[str]:
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []


@pytest.mark.parametrize("extra", ["ogbench", "demo", "d4rl", "all", "dev"])
@pytest.mark.parametrize("python", ["3.13", "3.14"])
def test_the_extras_name_all_that_ogbench_needs_but_labmaze(extra, python):
    missing = {name for name in needed(extra, "3.12") - needed(extra, python) if not name.startswith("backports-")}
    assert missing == {"ogbench", "dm-control", "labmaze"}  # a later Python has what backports give


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_package_that_is_needed_has_a_tested_version(python):
    assert needed("dev", python) <= set(pins())
