import numpy as np
import pytest
from step_files import flat_steps, write_npz

from drol.cli.main import main


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROL_DATA", raising=False)
    write_npz("steps.npz", flat_steps())


def test_an_imported_dataset_is_described(capsys):
    assert main(["data", "import", "steps.npz", "--out", "mine"]) == 0
    capsys.readouterr()
    for name in ("mine", "files/mine"):
        assert main(["data", "check", name]) == 0
        out = capsys.readouterr().out
        assert "every checksum right" in out
        assert "as marked (by terminals, timeouts):" in out
        assert "2 true ends, beyond which nothing is bootstrapped" in out
        assert "2 cuts (time limit, gap or end of a file)" in out
        assert "4 with 58 transitions" in out
        assert len(out.splitlines()) < 50


def test_a_file_is_described_before_it_is_imported(capsys, tmp_path):
    assert main(["data", "check", "steps.npz"]) == 0
    assert "nothing would be refused" in capsys.readouterr().out
    steps = flat_steps()
    steps["observations"][7] = np.nan
    del steps["rewards"], steps["timeouts"]
    steps["actions"] *= 5
    write_npz("bad.npz", steps)
    assert main(["data", "check", "bad.npz"]) == 1
    out = capsys.readouterr().out
    refused = out[out.index("would be refused:") :]
    assert "there is no reward" in refused
    assert "it is not clear which ends are true ends" in refused
    assert "observations has values that are NaN" in refused
    assert "actions reaches" in refused
    assert "observation 3" in out[: out.index("would be")]
    assert {path.name for path in tmp_path.iterdir()} == {"steps.npz", "bad.npz"}


def test_what_is_not_there_or_damaged_is_one_line(capsys, tmp_path):
    assert main(["data", "check", "nothing"]) == 2
    assert "unknown dataset 'nothing'. The folder datasets holds none" in capsys.readouterr().err
    assert main(["data", "import", "steps.npz", "--out", "mine"]) == 0
    path = tmp_path / "datasets" / "mine" / "train" / "action.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    capsys.readouterr()
    assert main(["data", "check", "mine"]) == 2
    assert "does not match its checksum" in capsys.readouterr().err
