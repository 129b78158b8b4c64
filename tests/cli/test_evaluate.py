"""`drol evaluate` as it is typed."""

import pytest
from toys import saved_run, tiny_config, tiny_task

from drol.cli.main import main
from drol.evaluation import fitted_q
from drol.runs import config as config_module

MISTAKES = {
    "episodes offline": (["--offline", "--episodes", "3"], "--episodes cannot be used with --offline"),
    "seeds offline": (["--offline", "--first-seed", "0"], "--first-seed cannot be used with --offline"),
    "every step played": (["--every-step"], "--every-step needs --offline"),
    "updates played": (["--updates", "5"], "--updates needs --offline"),
    "a discount played": (["--discount", "0.9"], "--discount needs --offline"),
    "acting offline": (["--offline", "--act-steps", "2"], "--act-steps cannot be used with --offline"),
    "steps of another": (["--act-steps", "2"], "act_steps is given; of the hyperparameters of DROL evaluations may"),
    "two steps": (["--offline", "--every-step", "--step", "6"], "step 6 and every_step exclude each other"),
    "no step": (["--offline", "--step", "5"], "no policy of step 5"),
    "a discount of one": (["--offline", "--discount", "1"], "the discount is 1.0; offline evaluation needs one of"),
    "no updates": (["--offline", "--updates", "0"], "updates is 0; it must be a whole number of at least 1"),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(config_module, "load_task", lambda name, dataset: tiny_task(environment=None))
    monkeypatch.setattr(fitted_q, "START_UPDATES", 20)
    monkeypatch.setenv("DROL_CACHE_DIR", str(tmp_path / "cache"))
    return saved_run(tmp_path / "run", tiny_config(seeds=(3,)), (0, 6))


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_writes_nothing(run, flags, message, capsys):
    assert main(["evaluate", str(run.path), *flags]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not run.offline_file.exists()


def test_the_table_has_a_line_for_each_policy_and_the_rows_are_written(run, capsys):
    assert main(["evaluate", str(run.path), "--offline", "--every-step", "--updates", "3"]) == 0
    seen, titles, first, last, where = capsys.readouterr().out.splitlines()
    assert seen == "on held-out data; discount 0.99"
    assert titles.split()[:2] == ["step", "seed"]
    assert (first.split()[:2], last.split()[:2]) == (["0", "3"], ["6", "3"])
    assert len(first) == len(titles) == len(last)
    assert where == f"wrote {run.offline_file}"
    rows = run.read_offline_evaluations()
    assert f"{rows[1].figures['value']:.2f}" in last.split()


def test_data_that_was_trained_on_is_called_so(run, capsys, monkeypatch):
    task = tiny_task(environment=None, validation=None)
    monkeypatch.setattr(config_module, "load_task", lambda name, dataset: task)
    assert main(["evaluate", str(run.path), "--offline", "--updates", "3"]) == 0
    assert capsys.readouterr().out.startswith("on the training data (no data is held out)")
