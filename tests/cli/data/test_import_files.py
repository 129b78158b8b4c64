import signal
import subprocess
import sys

import numpy as np
import pytest
from step_files import flat_steps, write_csv, write_npz, write_parquet

from drol.cli.main import main


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROL_DATA", raising=False)
    write_npz("steps.npz", flat_steps())


def test_a_file_becomes_a_dataset(capsys, tmp_path):
    assert main(["data", "import", "steps.npz", "--out", "mine"]) == 0
    out = capsys.readouterr().out
    assert "60 steps: " in out
    assert "2 true ends, 2 cuts" in out
    assert "wrote datasets/mine" in out
    assert (tmp_path / "datasets" / "mine" / "dataset.json").is_file()
    assert main(["data", "list", "files"]) == 0
    listed = capsys.readouterr().out
    assert "files: 1 dataset, 1 task, 1 here" in listed
    assert "files/mine" in listed


def test_columns_are_mapped_with_flags(capsys, tmp_path):
    steps = flat_steps()
    columns = {"joint": steps["observations"], "torque": 4 * steps["actions"], "over": steps["terminals"]}
    write_csv(tmp_path / "log.csv", columns)
    flags = "--observation joint --action torque_0 torque_1 --end over --ends timeout --fill-reward zero"
    assert (
        main(["data", "import", "log.csv", "--out", "log", *flags.split(), "--action-low", "-4", "--action-high", "4"])
        == 0
    )
    assert "0 true ends, 3 cuts" in capsys.readouterr().out


MISTAKES = {
    "no name": (["steps.npz"], "the following arguments are required: --out"),
    "a name that leads out": (["steps.npz", "--out", "../mine"], "dataset name '../mine' is not allowed"),
    "a missing file": (["absent.npz", "--out", "mine"], "the file absent.npz does not exist"),
    "an unknown array": (["steps.npz", "--out", "mine", "--reward", "gain"], "has no 'gain'; it has 'observations'"),
    "an unclear end": (["steps.npz", "--out", "mine", "--timeout", "none"], "pass --ends terminal or --ends timeout"),
    "half a box": (["steps.npz", "--out", "mine", "--action-low", "0"], "only one of --action-low and --action-high"),
    "a small box": (
        ["steps.npz", "--out", "mine", "--action-low", "0", "--action-high", "0.1"],
        "outside the box [0, 0.1]",
    ),
    "too much": (["steps.npz", "--out", "mine", "--max-bytes", "9"], "--max-bytes allows 9 bytes"),
    "too much held out": (["steps.npz", "--out", "mine", "--validation", "0.9"], "validation is 0.9; it must be"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, message, capsys, tmp_path):
    assert main(["data", "import", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["steps.npz"]


def test_a_nan_is_refused_unless_dropped(capsys):
    steps = flat_steps()
    steps["rewards"][3] = np.nan
    write_npz("bad.npz", steps)
    assert main(["data", "import", "bad.npz", "--out", "bad"]) == 2
    assert "rewards has values that are NaN" in capsys.readouterr().err
    assert main(["data", "import", "bad.npz", "--out", "bad", "--drop-nonfinite"]) == 0


def test_progress_is_shown_in_megabytes(capsys, monkeypatch):
    monkeypatch.setattr("drol.data.readers.fields.BLOCK_BYTES", 300)
    assert main(["data", "import", "steps.npz", "--out", "mine", "--scale-actions"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("importing: 0.0/0.0 MB, ")
    assert lines[0].endswith("left, reading steps.npz")


STOPPED = """
import signal, sys
from drol.cli.main import main
from drol.data.importing.import_files import ReadProgress
signal.signal(int(sys.argv[1]), signal.SIG_DFL)  # the tests may run in the background, where some are ignored
ReadProgress.show = lambda *_: signal.raise_signal(int(sys.argv[1]))
sys.exit(main(["data", "import", "log.csv", "--out", "mine"]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_an_import_and_leaves_nothing(number, code, tmp_path):
    write_csv(tmp_path / "log.csv", flat_steps())
    before = sorted(tmp_path.iterdir())
    answer = subprocess.run(
        [sys.executable, "-c", STOPPED, str(int(number))], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr == "drol: error: interrupted\n"
    assert sorted(tmp_path.iterdir()) == before


def test_text_of_files_reaches_no_terminal_raw(capsys, tmp_path):
    """Names of columns, of files and what libraries say of them may hold anything, such as \\x1b[2J."""
    evil = "\x1b[2J\x07\u202e"
    folder = tmp_path / "robot" / "data"
    folder.mkdir(parents=True)
    steps = flat_steps()
    steps |= {f"joints{evil}": steps.pop("observations")}
    write_parquet(folder / f"a{evil}.parquet", steps)
    flags = ["--observation", f"joints{evil}"]
    assert main(["data", "import", "robot", "--out", "mine", *flags]) == 0
    for command in (["robot", *flags], ["robot"], ["mine"]):
        main(["data", "check", *command])
    main(["data", "list", "files"])
    (folder / f"a{evil}.parquet").write_bytes(b"PAR1")
    assert main(["data", "import", "robot", "--out", "other"]) == 2
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert text.count("\\x1b[2J\\x07\\u202e") > 5
    assert text.replace("\n", "").isprintable()


def test_what_is_used_and_what_is_not_is_printed(capsys, tmp_path):
    np.savez("more.npz", **flat_steps(), temperature=np.zeros(60), label=np.array("pick"))
    names = ["--observation-names", "x", "y", "z", "--observation-units", "m", "--action-names", "left", "right"]
    assert main(["data", "import", "more.npz", "--out", "more", *names]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "observation: observations" in out
    assert "not used: temperature, label" in out
    assert main(["data", "check", "more"]) == 0
    shown = capsys.readouterr().out
    assert "in this order: x [m], y [m], z [m]" in shown
    assert "in this order: left, right" in shown
    assert "temperature (float64): no field has such a name" in shown
    assert "label (a single <U4)" in shown or "label (unreadable)" in shown


def test_a_transform_is_a_flag(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(sys.path))
    source = "import numpy\ndef near(columns):\n    columns['rewards'] = -numpy.abs(columns['observations'][:, 0])\n"
    (tmp_path / "flag_transform.py").write_text(source + "    return columns\n")
    transform = ["--transform", "flag_transform:near"]
    assert main(["data", "check", "steps.npz", *transform]) == 0
    assert "the columns are those that the transform flag_transform:near returns" in capsys.readouterr().out
    assert main(["data", "import", "steps.npz", "--out", "near", *transform]) == 0
    for flags, words in (
        (["--transform", "flag_transform"], "it must be module:function, such as my_data:add_reward"),
        (["--transform", "flag_transform:far"], "the module flag_transform has no function 'far'"),
        (["--observation-names", "x"], "--observation-names gives 1 names for 3 numbers"),
        (["--split-at-gaps", "1"], "needs a time; name it with --time"),
    ):
        assert main(["data", "import", "steps.npz", "--out", "other", *flags]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "datasets" / "other").exists()


def test_a_single_episode_is_named_in_the_singular_and_nothing_is_held_out(capsys, tmp_path):
    steps = flat_steps()
    end = int(np.flatnonzero(steps["terminals"] | steps["timeouts"])[0]) + 1
    write_npz("one.npz", {name: array[:end] for name, array in steps.items()})
    assert main(["data", "import", "one.npz", "--out", "one", "--scale-actions"]) == 0
    output = capsys.readouterr().out
    assert ": 1 episode to train on (" in output
    assert "note: no episode is held out, so there is nothing to validate on" in output
