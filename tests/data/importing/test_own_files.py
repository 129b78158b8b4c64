"""Files as users have them, from the file to the dataset: names, time, rewards, splits."""

import numpy as np
import pytest
from step_files import refusal

from drol.data.dimensions import Naming
from drol.data.import_options import ReadingOptions
from drol.data.importing.audit import audit_files, audit_stored
from drol.data.importing.import_files import import_files

HEAD = "run,time,x [m],y [m],u,done,good,note\n"
MAPPING = {"observation": ["x", "y"], "action": ["u"], "episode": ["run"], "success": ["good"], "terminal": ["done"]}


def lines(order=1, gap=0.0):
    text = []
    for run in ("a", "b", "c"):
        rows = []
        for step in range(10):
            late = gap if step > 5 else 0.0
            over = step == 9
            rows.append(f"{run},{0.1 * step + late:.2f},{step},{2 * step},{0.05 * step},{over},{step > 7},hi\n")
        text += rows[::order]
    return HEAD + "".join(text)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "log.csv").write_text(lines())
    return tmp_path / "log.csv"


def imported(path, mapping=MAPPING, naming=None, **options):
    options.setdefault("fill_reward", "success")
    root = path.parent / "datasets"
    return import_files([path], "mine", mapping, ReadingOptions(**options), root=root, validation=0, naming=naming)


def test_names_units_and_sampling_are_stored(path):
    stored = imported(path, naming={"action": Naming(("torque",), ("N m",), ("motor",))})
    assert stored.dimensions["observation"].describe() == ["x [m]", "y [m]"]
    assert stored.dimensions["action"].describe() == ["torque [N m] in motor"]
    assert stored.manifest["sampling"]["interval"] == pytest.approx(0.1)
    assert stored.manifest["unused"] == [["note", "text", "it is text such as 'hi'"]]
    text = str(audit_stored("mine", path.parent / "datasets"))
    assert "in this order: x [m], y [m]" in text
    assert "- note (text): it is text such as 'hi'" in text
    assert "time: 10 Hz (every 0.1 s" in text


def test_success_is_the_reward_and_its_timing_is_shown(path):
    stored = imported(path)
    arrays = stored.arrays("train")
    np.testing.assert_array_equal(arrays["reward"][~arrays["last"]][:10], [0] * 8 + [1, 1])
    audit = audit_files([path], MAPPING, ReadingOptions(fill_reward="success"))
    text = str(audit)
    assert (
        "1 where good is true, else 0; computed from the row of the action, which holds what is seen before it" in text
    )
    assert "the first rows of an episode, as they are stored" in text
    assert not audit.problems


def test_time_that_runs_backwards_is_refused(path):
    path.write_text(lines(order=-1))
    message = refusal(
        import_files, [path], "other", MAPPING, ReadingOptions(fill_reward="zero"), root=path.parent / "datasets"
    )
    assert f"{path}: time runs backwards within an episode, at steps 2, 3, 4, 5, 6 and" in message
    audit = audit_files([path], MAPPING, ReadingOptions(fill_reward="zero"))
    assert any("runs backwards" in problem for problem in audit.problems)


def test_gaps_are_refused_or_split(path):
    path.write_text(lines(gap=3.0))
    assert "time has a gap within an episode, at steps 6, 16, 26: 3.1 s where 0.1 is usual" in refusal(imported, path)
    stored = imported(path, split_at_gaps=1.0)
    assert stored.manifest["splits"]["train"]["episodes"] == 6
    assert stored.manifest["counts"]["splits"] == 3
    assert any(
        "3 cuts at gaps in time split episodes" in each for each in audit_stored("mine", stored.folder.parent).notes
    )


def test_a_time_that_is_none_is_left_alone(path):
    path.write_text(lines(order=-1).replace("True", "False"))
    stored = imported(path, MAPPING | {"time": ["none"]}, ends="timeout")
    assert stored.manifest["sampling"] is None
    assert {name: why for name, _, why in stored.manifest["unused"]}["time"] == "--time none ignores it"
    reading = ReadingOptions("timeout", "zero", split_at_gaps=1.0)
    message = refusal(import_files, [path], "other", MAPPING | {"time": ["none"]}, reading, root=path.parent / "d")
    assert "--split-at-gaps needs a time; name it with --time" in message


def test_a_column_says_which_episodes_are_held_out(path):
    text = path.read_text().replace("note\n", "held_out\n").replace(",hi\n", ",0\n")
    path.write_text(
        "".join(line.replace(",0\n", ",1\n") if line.startswith("b") else line for line in text.splitlines(True))
    )
    reading, root = ReadingOptions(fill_reward="zero"), path.parent / "datasets"
    stored = import_files([path], "mine", MAPPING, reading, root=root)
    assert [stored.manifest["splits"][split]["episodes"] for split in ("train", "validation")] == [2, 1]
    other = import_files([path], "other", MAPPING, reading, root=root, validation=0)
    assert other.splits == ("train",)
    path.write_text(text.replace(",0\n", ",1\n", 1))
    assert "held_out changes within an episode" in refusal(import_files, [path], "third", MAPPING, reading, root=root)


def test_files_whose_numbers_differ_are_not_joined(tmp_path):
    (tmp_path / "a.csv").write_text("x1,x2,action,done\n1,2,0,1\n")
    (tmp_path / "b.csv").write_text("x2,x1,action,done\n1,2,0,1\n")
    paths, mapping = [tmp_path / "a.csv", tmp_path / "b.csv"], {"observation": ["x*"]}
    message = refusal(import_files, paths, "mine", mapping, ReadingOptions("terminal", "zero"), root=tmp_path / "d")
    assert "the numbers of the observation are not the same, or not in the same order" in message
    named = {"observation": ["x1", "x2"]}
    stored = import_files(paths, "mine", named, ReadingOptions("terminal", "zero"), root=tmp_path / "d", validation=0)
    np.testing.assert_array_equal(stored.arrays("train")["observation"], [[1, 2], [1, 2], [2, 1], [2, 1]])
