import importlib.metadata
import subprocess
import tomllib

import pytest
from toys import TESTS

from drol.experiments import doctor as module
from drol.experiments.doctor import NOTE, OK, PROBLEM, doctor

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture
def without(monkeypatch):
    """Let packages look as if they were not installed."""
    real = module.installed_version

    def hide(*names):
        monkeypatch.setattr(module, "installed_version", lambda name: None if name in names else real(name))

    return hide


def states(findings):
    return {finding.subject: finding.state for finding in findings}


def test_each_finding_is_reported_and_every_problem_has_an_advice(monkeypatch):
    for name in ("check_rendering", "check_training"):
        monkeypatch.setattr(module, name, lambda: iter([module.Finding("drawing", PROBLEM, "no", "do this")]))
    monkeypatch.setattr(
        module, "find_reachable", lambda addresses, seconds: ([], [f"{each}: no" for each in addresses])
    )
    seen = []
    found = doctor(["http://127.0.0.1:1/x"], seen.append)
    assert seen == found
    subjects = {"drol", "packages", "device", "compiler", "data folder", "runs", "space", "memory", "network"}
    assert states(found).keys() >= subjects
    assert states(found)["network"] == NOTE  # to have no network is no failure
    assert all(finding.advice for finding in found if finding.state == PROBLEM)
    assert all("\n" not in finding.words + finding.advice for finding in found)


def test_packages_that_are_needed_and_missing_or_too_old_are_problems(without, monkeypatch):
    without("optax")
    (found,) = [each for each in module.check_versions() if each.state == PROBLEM]
    assert "optax is missing" in found.words
    monkeypatch.setattr(module, "installed_version", lambda name: "0.0.1")
    (found,) = [each for each in module.check_versions() if each.state == PROBLEM]
    assert "jax is 0.0.1, needed is >=" in found.words


def test_other_versions_than_those_tested_together_are_named(monkeypatch):
    real = module.installed_version
    monkeypatch.setattr(module, "installed_version", lambda name: "99.0" if name == "rich" else real(name))
    (found,) = [each for each in module.check_versions() if each.subject == "packages"]
    assert (found.state, "rich 99.0 (tested: " in found.words) == (NOTE, True)


def test_without_a_distribution_nothing_is_said_of_its_requirements(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert PROBLEM not in [finding.state for finding in module.check_versions()]


def test_an_extra_that_is_not_installed_is_no_problem_and_says_what_it_is_for(without):
    without("pyarrow", "jax-cuda12-plugin")
    found = {finding.subject: finding for finding in module.check_extras()}
    assert found["extra lerobot"].state == NOTE
    assert "(pyarrow), for LeRobot's Parquet files: pip install 'drol[lerobot]'" in found["extra lerobot"].words
    assert found["extra cuda12"].state == NOTE
    assert found["extra report"].state == OK


def test_every_extra_of_the_project_is_explained():
    extras = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert module.EXTRAS.keys() == extras.keys() - {"all", "dev"}


def test_a_driver_that_ends_the_drawing_process_is_a_problem(monkeypatch):
    monkeypatch.setattr(module, "DRAWING", "import os; os.abort()")
    (found,) = module.check_rendering()
    assert found.state == PROBLEM
    assert "cannot draw" in found.words


def test_a_drawing_that_hangs_is_a_problem(monkeypatch):
    def hang(*arguments, **options):
        raise subprocess.TimeoutExpired("python", 1)

    monkeypatch.setattr(subprocess, "run", hang)
    assert [finding.state for finding in module.check_rendering()] == [PROBLEM]


def test_too_little_room_is_a_problem_with_the_amounts(monkeypatch):
    monkeypatch.setattr(module, "free_memory", lambda: 10**6)
    found = {finding.subject: finding for finding in module.check_room()}
    assert found["memory"].state == PROBLEM
    assert found["memory"].words == "1 MB free; at least 1 GB are needed"
    monkeypatch.setattr(module, "free_memory", lambda: None)
    assert states(module.check_room())["memory"] == NOTE


def test_a_data_folder_that_cannot_be_made_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DROL_DATA", str(tmp_path / "file" / "datasets"))
    assert states(module.check_folders())["data folder"] == PROBLEM


def test_the_training_works_without_a_simulator(without):
    without("ogbench")
    (found,) = module.check_training()
    assert found.state == OK
    assert "20 updates and 2 evaluations by held-out data" in found.words


def test_a_training_that_fails_is_a_problem_that_names_the_error(monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("the device\nis gone")

    monkeypatch.setattr(module, "small_task", fail)
    (found,) = module.check_training()
    assert found.state == PROBLEM
    assert found.words == "a training ends with RuntimeError: the device is gone"
