"""The command line as a person meets it: help at once, every mistake one line."""

import errno
import logging
import os
import signal
import subprocess
import sys
import time
import types

import pytest

from drol.cli import main as command_line
from drol.cli.main import COMMANDS, main, printed_messages


def test_help_lists_every_command_and_imports_no_jax():
    code = "import sys; from drol.cli.main import main; main(['--help']); sys.exit('jax' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in answer.stdout


def test_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "drol 0.1.0\n"


MISTAKES = {
    "unknown command": (["trian"], "unknown command of `drol` 'trian'; did you mean train?"),
    "unknown task": (
        ["train", "pointmaze-medium-navigate-singeltask-task1-v0"],
        "unknown task 'pointmaze-medium-navigate-singeltask-task1-v0'; did you mean",
    ),
    "data that was not imported": (
        ["train", "files/gripper"],
        "unknown task 'files/gripper'; make it with: drol data import FILE... --out gripper",
    ),
    "unknown algorithm": (["train", "--algorithm", "droll"], "unknown algorithm 'droll'; did you mean drol?"),
    "no steps": (["train", "--steps", "0"], "steps is 0; it must be from 1 to"),
    "no candidates": (["train", "--num-candidates", "0"], "num_candidates is 0; it must be from 1 to"),
    "half a candidate": (["train", "--num-candidates", "2.5"], "--num-candidates: '2.5' is not a whole number"),
    "a discount above 1": (["train", "--discount", "1.5"], "discount is 1.5; it must be from 0 to 1"),
    "an enormous batch": (["train", "--batch-size", "1000000000"], "batch_size is 1000000000; it must be from 1 to"),
    "enormous layers": (
        ["train", "--hidden-sizes", "1000000", "1000000"],
        "hidden_sizes is (1000000, 1000000); it must",
    ),
    "too many layers": (
        ["train", "--hidden-sizes", *["8"] * 65],
        "hidden_sizes has 65 entries; it must have at most 64",
    ),
    "more steps than ever": (["train", "--steps", str(10**30)], "it must be from 1 to 1,000,000,000,000"),
    "no processes": (["train", "--processes", "-1"], "processes is -1; it must be a whole number of at least 1"),
    "no processes for a plan": (["paper", "run", "table1", "--processes", "-1"], "processes is -1; it must be a whole"),
    "no processes to collect": (["data", "collect", "cube-single-play-v0", "--processes", "-1"], "processes is -1;"),
    "a flag without its value": (["train", "--algorithm"], "argument --algorithm: expected one argument"),
    "a name with line breaks": (["train", "files/x\ny"], "unknown task 'files/x\\ny'"),
    "a name that no file has": (["train", "--out", "x\0y"], "'x\\x00y' has a NUL byte"),
    "a variable that is not set": (["train", "--dataset", ""], "empty value for an argument (unset shell variable?)"),
    "an empty value": (["train", "--out="], "empty value for --out (unset shell variable?)"),
    "an infinite rate": (["train", "--learning-rate", "inf"], "learning_rate is inf; it must be from 1e-12 to 1"),
    "no rate": (["train", "--learning-rate", "0"], "learning_rate is 0.0; it must be from 1e-12 to 1"),
    "two values for a flag": (["train", "--bc-weight", "0.1", "0.3"], "0.3 is not a task; most flags take one value"),
    "the case of a name": (["train", "--algorithm", "DROL"], "unknown algorithm 'DROL'; did you mean drol?"),
    "an algorithm of one's own": (["train", "--algorithm", "drol-soft"], "If it is yours, add --import MODULE"),
    "the beginning of a task": (["train", "pointmaze"], "did you mean pointmaze-medium-navigate-singletask-v0?"),
    "no task at all": (["train", "nope"], "unknown task 'nope'. `drol data list --all` names all tasks"),
    "no module to import": (["train", "--import"], "--import needs the name of a module"),
    "a module that is not there": (
        ["train", "--import", "no_such"],
        "module 'no_such' is neither here nor installed",
    ),
    "a seed twice": (["train", "--seeds", "1", "2", "1"], "seeds 1 2 1 has duplicates"),
    "a flag of other methods": (["train", "--alpha", "3"], "--alpha is a hyperparameter of "),
    "a misspelt flag": (["train", "--bc-wieght", "3"], "unknown argument '--bc-wieght'; did you mean --bc-weight?"),
    "a word for a number": (["train", "--bc-weight", "much"], "--bc-weight: 'much' is not a number"),
    "an unknown choice": (["train", "--q-aggregation", "median"], "--q-aggregation: invalid choice: 'median'"),
    "a missing dataset": (["train", "--dataset", "no/such.npz"], "dataset file no/such.npz does not exist"),
    "not a run": (["evaluate", "no/such"], "no/such is not a run folder"),
    "not a run to report": (["report", "no/such"], "no/such is not a folder; give a run, or a folder with runs"),
    "an unknown dataset": (["data", "collect", "antmaze-x"], "unknown dataset 'antmaze-x'; did you mean antmaze-"),
    "an unknown data command": (["data", "colect"], "unknown command of `drol data` 'colect'; did you mean collect?"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("drol: error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_dataset_is_refused_before_a_run_folder_is_made(capsys, tmp_path):
    path = tmp_path / "short.npz"
    path.write_bytes(b"PK\x03\x04" + bytes(50))
    out = tmp_path / "run"
    assert main(["train", "--dataset", str(path), "--out", str(out)]) == 2
    assert f"dataset file {path} is truncated or damaged" in capsys.readouterr().err
    assert not out.exists()


def test_an_unwritable_run_folder_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "run"
    assert main(["train", "--preset", "laptop", "--out", str(out)]) == 2
    assert f"cannot write to the run folder {out}" in capsys.readouterr().err


def test_a_used_folder_is_refused_and_left_alone(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "--preset", "laptop", "--out", str(tmp_path)]) == 2
    assert "has files but no config.json" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_without_the_reproduction_one_line_says_how_to_install_it(monkeypatch, capsys):
    for name in [each for each in sys.modules if each.split(".")[0] == command_line.COMPANION]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not each.endswith("reproduction/src")])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    assert main(["paper", "plan"]) == 2
    message = "`drol paper` needs drol_reproduction; install it from a checkout: pip install ./reproduction"
    assert capsys.readouterr().err == f"drol: error: {message}\n"


def test_every_command_explains_itself(capsys):
    for name in COMMANDS:
        try:
            code = main([name, "--help"])
        except SystemExit as stop:  # argparse leaves this way after printing help
            code = stop.code
        assert code == 0
        assert capsys.readouterr().out.startswith("usage: drol ")


def run_as(monkeypatch, function):
    """Let `drol train` be a function."""
    module = types.ModuleType("fake_command")
    module.run = function
    monkeypatch.setitem(sys.modules, "fake_command", module)
    monkeypatch.setattr(command_line, "COMMANDS", {"train": ("fake_command", "")})
    return main(["train"])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]
)
def test_a_signal_is_one_line_whatever_a_library_makes_of_it(monkeypatch, capsys, number, code):
    tidied = []

    def run(_):
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise ValueError("could not convert string '0' to float64 at row 7863") from None
        finally:
            tidied.append(True)

    before = signal.signal(number, signal.SIG_DFL)  # the tests may run in the background, where some are ignored
    try:
        assert run_as(monkeypatch, run) == code
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert capsys.readouterr().err == "drol: error: interrupted\n"
    assert tidied == [True]


def test_a_signal_in_a_place_where_nothing_can_be_raised_comes_again(monkeypatch, capsys):
    class Removed:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def run(_):
        Removed()
        time.sleep(60)

    hook = sys.unraisablehook
    assert run_as(monkeypatch, run) == 143
    assert capsys.readouterr().err == "drol: error: interrupted\n"
    assert sys.unraisablehook is hook


def test_a_signal_that_is_ignored_stays_so(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_as(monkeypatch, lambda _: signal.raise_signal(signal.SIGHUP) or 0) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


IMPORTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
sys.meta_path.insert(0, Interrupt())
from drol.cli.main import main
sys.exit(main(["train"]))
"""


@pytest.mark.parametrize("module", ["numpy._core.multiarray", "jaxlib.xla_client"])
def test_ctrl_c_during_the_imports_is_one_line(module):
    line = [sys.executable, "-c", IMPORTED, module]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "drol: error: interrupted\n")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "choose a folder"),
    ],
)
def test_a_fault_of_the_disk_is_a_line_with_the_path_and_what_to_do(monkeypatch, capsys, number, advice):
    def run(_):
        raise OSError(number, os.strerror(number), "runs/x\n/policies")

    assert run_as(monkeypatch, run) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"drol: error: runs/x /policies cannot be written ({os.strerror(number)}); ")
    assert advice in printed
    assert printed.count("\n") == 1


def test_memory_that_is_used_up_is_one_line_and_a_fault_of_ours_is_not_hidden(monkeypatch, capsys):
    def run(_):
        raise MemoryError("Unable to allocate 3.6 TiB")

    assert run_as(monkeypatch, run) == 1
    assert "not enough memory (Unable to allocate 3.6 TiB)" in capsys.readouterr().err

    def fail(_):
        raise KeyError("ours")

    with pytest.raises(KeyError):
        run_as(monkeypatch, fail)


def test_a_message_is_one_line_and_a_warning_is_printed_once(capsys):
    logger = logging.getLogger("drol.somewhere")
    with printed_messages():
        logger.info("step 5:\nscore 3")
        for _ in range(2):
            logger.warning("line 3\x1b[2J")
    logger.info("after the command")
    assert capsys.readouterr().err == "step 5: score 3\ndrol: warning: line 3\\x1b[2J\n"
    assert logging.getLogger("drol").handlers == []
