"""docs/own-data.md is run from its first block to its last, with fewer updates."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from drol.cli.main import main
from drol.data.store.stored import StoredDataset

pytest.importorskip("minari")
PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"
STEPS = "60"


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
        words = [STEPS if before == "--steps" else word for before, word in zip(["", *words], words, strict=False)]
        assert main(words[1:]) == 0, line
    return ""


@pytest.mark.usefixtures("quick_compile")
def test_the_way_from_a_log_to_a_control_loop(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "datasets"))
    root = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (root / "src", root / "runtime" / "src"))))
    blocks = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "sh", "sh", "sh", "python", "python", "sh", "python", "sh"]
    printed = [run_block(kind, text) for kind, text in blocks]
    shown = capsys.readouterr().out
    assert "actions: 1 number, scaled from -2 to 2" in shown
    assert "['cosine', 'sine', 'speed'] ['1', '1', 'rad/s']" in printed[4]
    assert re.search(r"return -\d+", printed[4])
    datasets = {path.name: StoredDataset.open(path.name) for path in (tmp_path / "datasets").iterdir()}
    assert datasets.keys() == {"pendulum", "robomimic", "lerobot", "upright"}
    assert datasets["robomimic"].manifest["splits"]["validation"]["episodes"] == 6  # as its mask says
    assert datasets["lerobot"].dimensions["observation"].names == ("cosine", "sine", "speed")
    assert datasets["upright"].manifest["counts"]["reached"] > 1000
    bundle = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    assert bundle["action"]["names"] == ["torque"]
    page = (tmp_path / "pendulum.html").read_text()
    assert "torque" in page
