"""The file of a run, and executing it; tests/sweeps/test_training.py trains through such files."""

import dataclasses
import json
import sys

import pytest
from toys import tiny_config, tiny_task

import drol.tasks
from drol.cli.main import main
from drol.errors import InputError
from drol.planning import run_file
from drol.planning.run_file import RunFile
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow
from drol.runs.run import Run


class Toys(drol.tasks.TaskSource):
    name = "toys"

    def task_names(self):
        return ["toy"]

    def load(self, name, dataset_path=None):
        return tiny_task(None)


@pytest.fixture
def toy(monkeypatch):
    """Settings of a tiny run on a task that is registered here."""
    monkeypatch.setattr(drol.tasks, "REGISTRY", drol.tasks.Registry())
    drol.tasks.register_task_source(Toys())
    return tiny_config(steps=20)


def test_a_file_has_the_same_run_and_never_changes(toy, tmp_path):
    planned = RunFile(toy, tmp_path / "run", (4, 16), "wandb")
    path = planned.write(tmp_path / "jobs", "name")
    assert RunFile.read(path) == planned
    assert planned.write(tmp_path / "jobs", "name") == path
    longer = dataclasses.replace(planned, config=dataclasses.replace(toy, steps=40))
    assert longer.write(tmp_path / "jobs", "name") != path
    assert RunFile.read(path) == planned
    assert not [*(tmp_path / "jobs").glob(".*")]


def test_missing_evaluations_follow_the_training_and_a_stop_leaves_them_for_the_next_time(toy, tmp_path, monkeypatch):
    planned, made = RunFile(toy, tmp_path / "run", (4, 16)), []
    directory = RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    directory.write_config({"run": toy.to_dict(), "dataset_fingerprint": "", "circumstances": {}})

    def evaluate(run, best_of):
        made.append(best_of)
        for seed in toy.seeds:
            directory.log_extra_evaluation(EvaluationRow(toy.steps, seed, 1.0, best_of=best_of))

    stopped = [15, None, None]
    monkeypatch.setattr(run_file, "evaluate", evaluate)
    monkeypatch.setattr(run_file, "train", lambda *_, **__: Run(directory, toy, None, stopped.pop(0)))
    for expected in ([], [4, 16], [4, 16]):
        planned.execute()
        assert made == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("folder"), "is not a run file .KeyError"),
        (lambda values: values["run"].update(steps="many"), "steps is 'many'; it must be a whole number"),
        (lambda values: values["run"].update(stepz=1), "unknown setting of a run 'stepz'"),
        (lambda values: values["run"].update(algorithm=3), "is not a run file .TypeError"),
        (lambda values: values["run"]["algorithm"].update(name="evil_module"), "unknown algorithm 'evil_module'"),
    ],
)
def test_a_file_that_someone_changed_is_one_line_and_imports_nothing(
    change, message, toy, tmp_path, monkeypatch, capsys
):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    path = RunFile(toy, tmp_path / "run").write(tmp_path, "name")
    values = json.loads(path.read_text()) | {"imports": ["evil_module"], "import": "evil_module"}
    change(values)
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=message):
        RunFile.read(path)
    assert main(["execute", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert "evil_module" not in sys.modules
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_json_or_missing_is_one_line(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match=r"broken\.json is not a run file"):
        RunFile.read(tmp_path / "broken.json")
    with pytest.raises(InputError, match=r"cannot read the run file .*none\.json \(No such file"):
        RunFile.read(tmp_path / "none.json")
