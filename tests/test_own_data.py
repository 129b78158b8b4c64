"""docs/own-data.md is run from its first block to its last, with a smaller run; its policy must do the task."""

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from drol.cli.main import main
from drol.data.store.stored import StoredDataset

pytest.importorskip("minari")
PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"
SMALLER = ["--steps", "5000", "--batch-size", "64"]  # instead of 20,000 and 256; the command chooses all else


def run_block(kind: str, text: str) -> str:
    """Run a block of the page in this folder; return what a script printed."""
    if kind == "python":
        name = re.match(r"# (\w+\.py)\n", text)[1]
        Path(name).write_text(text)
        answer = subprocess.run([sys.executable, "-W", "ignore", name], capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout
    for line in text.splitlines():
        words = shlex.split(line)
        assert words[0] == "drol"
        if words[1] == "train":
            print(train(words[1:]))
        else:
            assert main(words[1:]) == 0, line
    return ""


def train(words: list[str]) -> str:
    """Train in a process with more of XLA's optimisations: 5,000 updates take a third of the time."""
    command = [sys.executable, "-m", "drol.cli.main", *words, *SMALLER]
    flags = {"XLA_FLAGS": os.environ["XLA_FLAGS"].replace("optimization_level=0", "optimization_level=1")}
    answer = subprocess.run(command, env=os.environ | flags, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.timeout(1200)
def test_the_way_from_a_log_to_a_control_loop(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "datasets"))
    root = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (root / "src", root / "runtime" / "src"))))
    blocks = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    expected = "python sh sh sh python sh python sh python python sh"
    assert [kind for kind, _ in blocks] == expected.split()
    printed = [run_block(kind, text) for kind, text in blocks]
    shown = capsys.readouterr().out
    assert "actions: 1 number, scaled from -2 to 2" in shown
    assert "['cosine', 'sine', 'speed'] ['1', '1', 'rad/s']" in printed[4]
    returns = [int(word) for word in re.search(r"^returns (.*)$", printed[4], re.MULTILINE)[1].split()]
    # Median returns: recorded episodes -122, an untrained policy -1,374, a policy that runs away -1,592.
    assert len(returns) == 10
    assert statistics.median(returns) > -700, returns
    assert re.search(r"method drol-choice, networks 3x128, 5,000 updates \(about .* here\): chosen from 10,800", shown)
    assert "6 trials among 2 policies: 2 x 3" in shown
    datasets = {path.name: StoredDataset.open(path.name) for path in (tmp_path / "datasets").iterdir()}
    assert datasets.keys() == {"pendulum", "robomimic", "lerobot", "derived"}
    assert datasets["robomimic"].manifest["splits"]["validation"]["episodes"] == 6  # as its mask says
    assert datasets["lerobot"].dimensions["observation"].names == ("cosine", "sine", "speed")
    assert datasets["lerobot"].manifest["transform"]["name"] == "pendulum_data:add_reward"
    names = ("cosine", "sine", "speed", "change", "history[0]", "history[1]")
    assert datasets["derived"].dimensions["observation"].names == names
    bundle = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    assert bundle["action"]["names"] == ["torque"]
    page = (tmp_path / "pendulum.html").read_text()
    assert "torque" in page
