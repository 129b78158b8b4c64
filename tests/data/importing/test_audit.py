"""A report says what is in files or a dataset; the command `drol data check` only prints it."""

import numpy as np
import pytest
from step_files import COUNT, FORMATS, flat_steps, refusal, write_npz
from toys import random_rows

from drol.data.actions import ActionBox
from drol.data.import_options import ReadingOptions
from drol.data.importing.audit import audit_files, audit_stored
from drol.data.importing.audit_text import summary
from drol.data.importing.column_statistics import Statistics
from drol.data.importing.episode_writer import EpisodeWriter
from drol.data.importing.import_files import Scaling, import_files


@pytest.fixture
def path(tmp_path):
    write_npz(tmp_path / "steps.npz", flat_steps())
    return tmp_path / "steps.npz"


@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
def test_files_are_understood_as_they_would_be_imported(tmp_path, name, write):
    write(tmp_path / name, flat_steps())
    found = audit_files([tmp_path / name])
    stored = import_files([tmp_path / name], "mine", root=tmp_path / "datasets")
    imported = audit_stored("mine", tmp_path / "datasets")
    assert found.problems == imported.problems == ()
    assert found.ends == imported.ends == "flags"
    assert found.fields == imported.fields
    assert found.counts == imported.counts
    assert found.counts.steps == COUNT
    assert found.statistics.transitions == imported.statistics.transitions == 58
    np.testing.assert_allclose(found.statistics.action.high, imported.statistics.action.high)
    assert found.splits == {}
    assert imported.splits["train"] == (4 - imported.splits["validation"][0], 58 - imported.splits["validation"][1])
    assert imported.stored == stored
    assert imported.files == (name,)


def test_what_an_import_would_refuse_is_listed(tmp_path):
    steps = flat_steps()
    steps["observations"][7] = np.nan
    steps["actions"] *= 5
    del steps["rewards"], steps["timeouts"]
    write_npz(tmp_path / "bad.npz", steps)
    audit = audit_files([tmp_path / "bad.npz"])
    expected = (
        "there is no reward",
        "it is not clear which ends",
        "observations has values that are",
        "actions reaches",
    )
    assert len(audit.problems) == len(expected)
    for problem, words in zip(audit.problems, expected, strict=True):
        assert words in problem
    assert audit.ends is None
    assert audit.counts.cuts
    assert not audit.counts.terminals
    assert "ends          not clear, here taken as cuts (by terminals):" in str(audit)
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.npz"]


def test_without_any_mark_a_file_is_looked_at_as_one_episode(tmp_path):
    steps = flat_steps()
    write_npz(tmp_path / "bad.npz", {name: steps[name] for name in ("observations", "actions", "rewards")})
    audit = audit_files([tmp_path / "bad.npz"])
    assert [problem[:35] for problem in audit.problems] == ["nothing says where episodes end; na"]
    assert audit.statistics.episodes == 1


def test_the_options_of_an_import_are_those_of_an_audit(path):
    reading = ReadingOptions(ends="timeout", drop_nonfinite=True)
    audit = audit_files([path], {"reward": ["timeouts"]}, reading, Scaling(from_data=True))
    assert audit.counts.terminals == 0
    assert audit.fields["reward"] == "timeouts"
    assert isinstance(audit.box, ActionBox)
    assert "every end is a cut, as was asked for" in str(audit)
    assert "scaled from (" in str(audit)


@pytest.mark.parametrize("scaling", [Scaling(), Scaling(from_data=True)])
def test_all_bytes_are_reported(path, tmp_path, scaling):
    for call in (
        lambda report: audit_files([path], scaling=scaling, report=report),
        lambda report: import_files([path], "mine", root=tmp_path / "datasets", scaling=scaling, report=report),
        lambda report: audit_stored("mine", tmp_path / "datasets", report),
    ):
        reports = []
        call(lambda *report, seen=reports: seen.append(report))
        done, totals, _ = zip(*reports, strict=True)
        assert list(done) == sorted(done)
        assert set(totals) == {done[-1]}


def test_a_dataset_is_described_in_a_minute(path, tmp_path):
    import_files([path], "mine", root=tmp_path / "datasets")
    lines = str(audit_stored("mine", tmp_path / "datasets")).splitlines()
    assert lines[0].startswith("mine: 1.")
    assert lines[0].endswith(f"kB in {tmp_path}/datasets/mine, every checksum right")
    for words in (
        "  read from     steps.npz; 60 steps",
        "  observation   observations: 3 numbers",
        "  action        actions: 2 numbers, not scaled, so in [-1, 1]; those at the limit are stored as +-0.99999",
        "  ends          as marked (by terminals, timeouts):",
        "                2 true ends, beyond which nothing is bootstrapped",
        "  NaN, infinite none",
        "  episodes      4 with 58 transitions",
        "to know:",
    ):
        assert words in lines, words
    assert not any("refused" in line for line in lines)
    assert len(lines) < 50


def test_data_that_was_written_from_python_has_no_files(tmp_path):
    with EpisodeWriter("mine", tmp_path, action_low=[-2], action_high=[2]) as writer:
        writer.add(np.zeros((4, 1)), np.ones((3, 1)), np.zeros(3), terminal=True)
    audit = audit_stored("mine", tmp_path)
    assert audit.files == ()
    assert "  read from     Python; 3 steps" in str(audit)
    assert "scaled from -2 to 2" in str(audit)
    assert any("no episode is held out" in note for note in audit.notes)


def test_many_files_are_not_all_named(tmp_path):
    paths = [tmp_path / f"{number}.npz" for number in range(6)]
    for path in paths:
        write_npz(path, flat_steps())
    audit = audit_files(paths)
    assert len(audit.files) == 6
    assert str(audit).startswith(", ".join(map(str, paths[:4])) + " and 2 more: 360 steps, not imported")


def test_what_was_changed_is_refused(path, tmp_path):
    stored = import_files([path], "mine", root=tmp_path / "datasets")
    file = stored.folder / "train" / "action.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    assert "does not match its checksum" in refusal(audit_stored, "mine", tmp_path / "datasets")


def test_many_dimensions_are_cut_short():
    statistics = Statistics()
    statistics.add(random_rows((30,), observation_size=40))
    lines = summary(statistics, {})
    assert sum(line.strip().startswith("observation") for line in lines) == 17
    assert any("observation 16 to 39 lie between" in line for line in lines)
