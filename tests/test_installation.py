import subprocess

import pytest

from drol import installation as module
from drol.installation import Finding, doctor


@pytest.fixture
def without(monkeypatch):
    """Let packages look as if they were not installed."""
    real = module.installed_version

    def hide(*names):
        monkeypatch.setattr(module, "installed_version", lambda name: None if name in names else real(name))

    return hide


def test_every_check_has_its_finding(monkeypatch):
    monkeypatch.setattr(module, "check_rendering", lambda: Finding("rendering", "no", "do this"))
    monkeypatch.setattr(module, "check_training", lambda: Finding("training", "one"))
    found = list(doctor())
    subjects = ["drol", "packages", "optional", "device", "memory", "rendering", "datasets", "runs", "training"]
    assert [finding.subject for finding in found] == subjects
    assert [finding.subject for finding in found if finding.advice] == ["rendering"]
    assert all("\n" not in finding.words for finding in found)


def test_a_package_that_is_not_installed_is_named(without):
    without("pyarrow")
    _, packages, optional = module.check_versions()
    assert packages.words.startswith(f"jax {module.installed_version('jax')}, equinox ")
    assert ", pyarrow is not installed, " in optional.words
    assert not optional.advice


def test_rendering_is_not_tried_without_mujoco(without):
    without("mujoco")
    assert module.check_rendering() == Finding("rendering", "not tried, because MuJoCo is not installed")


def test_a_driver_that_ends_the_drawing_process_is_a_problem(monkeypatch):
    monkeypatch.setattr(module, "DRAWING", "import os; os.abort()")
    found = module.check_rendering()
    assert "cannot draw without a screen: exit code -6" in found.words
    assert found.advice


def test_a_drawing_that_hangs_is_a_problem(monkeypatch):
    def hang(*arguments, **options):
        raise subprocess.TimeoutExpired("python", 1)

    monkeypatch.setattr(subprocess, "run", hang)
    assert module.check_rendering().advice


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    found = module.check_folder("runs", tmp_path / "file" / "runs", "work elsewhere")
    assert found == Finding("runs", f"{tmp_path / 'file'} cannot be written", "work elsewhere")
    assert not module.check_folder("runs", tmp_path / "new" / "runs", "work elsewhere").advice


def test_the_training_works_without_a_simulator(without):
    without("ogbench")
    found = module.check_training()
    assert found == Finding("training", "one update and its evaluation on data, because OGBench is not installed")


def test_a_training_that_fails_is_a_problem_that_names_the_error(monkeypatch):
    def fail():
        raise RuntimeError("the device\nis gone")

    monkeypatch.setattr(module, "small_task", fail)
    found = module.check_training()
    assert found.words == "one update fails with RuntimeError: the device is gone"
    assert found.advice
