import numpy as np
from step_files import refusal

from drol.data.files import open_steps
from drol.data.files.rules.sorting import sorted_blocks

TEXT = "run,time,obs,action\nb,2,12,0\na,1,1,0\nb,1,11,0\na,0,0,0\nb,0,10,0\na,2,2,0\n"


def test_rows_are_sorted_by_time_in_each_episode(tmp_path):
    (tmp_path / "log.csv").write_text(TEXT)
    file = open_steps(tmp_path / "log.csv", {"episode": ["run"]})
    blocks = list(sorted_blocks(file))
    steps = {name: np.concatenate([block[name] for block, _ in blocks]) for name in blocks[0][0]}
    np.testing.assert_array_equal(steps["observation"][:, 0], [10, 11, 12, 0, 1, 2])  # b comes first in the file
    assert steps["episode"][:, 0].tolist() == ["b", "b", "b", "a", "a", "a"]
    assert blocks[-1][1] == 1


def test_without_a_time_nothing_can_be_sorted(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text(TEXT.replace("time", "moment"))
    file = open_steps(tmp_path / "log.csv", {"episode": ["run"]})
    assert "has no time to sort by; name it with --time" in refusal(list, sorted_blocks(file))
    (tmp_path / "log.csv").write_text(TEXT)
    monkeypatch.setattr("drol.data.files.rules.sorting.free_memory", lambda: 10)
    file = open_steps(tmp_path / "log.csv", {"episode": ["run"]})
    assert "takes three times as much memory" in refusal(list, sorted_blocks(file))
