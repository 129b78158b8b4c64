"""Task sources of the library, of installed packages, and registered by a program."""

import importlib.metadata
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from drol import tasks
from drol.errors import InputError
from drol.tasks import SOURCES, Registry, TaskSource, find_source, known_sources, load_task, register_task_source


class Robot(TaskSource):
    """A source with two tasks; each loads as its name."""

    name = "robot"

    def __init__(self, *names):
        self.names = list(names or ("robot/pick", "robot/place"))

    def task_names(self):
        return self.names

    def load(self, name, dataset_path=None):
        return SimpleNamespace(name=name, dataset_path=dataset_path, make_environment="a function")


class Arm(Robot):
    name = "arm"


class OtherRobot(Robot):
    """Another class with the name of the first."""


class Nameless(TaskSource):
    """A source whose author forgot its name."""

    def task_names(self):
        return []

    def load(self, name, dataset_path=None):
        raise AssertionError


class Failing(Robot):
    name = "failing"

    def task_names(self):
        raise OSError("the robot\nis off")


class Broken(Robot):
    name = "broken"

    def __init__(self):
        raise RuntimeError("no licence")


def entry_point(name, load):
    return SimpleNamespace(name=name, value=f"package:{name}", load=load)


@pytest.fixture
def plugins(monkeypatch):
    """Create a separate registry with a list of entry points."""
    points = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == "drol.tasks" else [])
    monkeypatch.setattr(tasks, "REGISTRY", Registry())
    return points


def test_a_registered_source_is_found_by_the_names_of_its_tasks(plugins):
    robot = Robot()
    register_task_source(robot)
    assert find_source("robot/place") is robot
    assert load_task("robot/pick").name == "robot/pick"
    assert str(load_task("robot/pick", "mine.npz").dataset_path) == "mine.npz"
    assert list(known_sources()) == [*SOURCES, "robot"]
    with pytest.raises(InputError, match=r"unknown task 'robot/pik'; did you mean robot/pick\?"):
        find_source("robot/pik")


def test_what_a_source_does_not_say_has_defaults(plugins):
    robot = Robot()
    assert [(entry.name, entry.tasks, entry.present) for entry in robot.datasets()] == [
        ("robot/pick", ("robot/pick",), False),
        ("robot/place", ("robot/place",), False),
    ]
    assert robot.make_environment("robot/pick") == "a function"
    for refused in (robot.download_folder, lambda: robot.file_addresses("x"), lambda: robot.check_file("x")):
        with pytest.raises(InputError, match="the source robot publishes no files"):
            refused()


def test_a_name_that_is_taken_is_refused(plugins):
    register_task_source(Robot())
    with pytest.raises(InputError, match=r"the name 'robot' is that of .*\.Robot; choose another one"):
        register_task_source(OtherRobot())
    for builtin in SOURCES:
        arm = Arm()
        arm.name = builtin
        with pytest.raises(InputError, match=f"the name '{builtin}' is that of drol.tasks"):
            register_task_source(arm)
    with pytest.raises(InputError, match="is not a task source; it must be a drol"):
        register_task_source("drol.tasks.own_data")
    with pytest.raises(InputError, match="with a name"):
        register_task_source(Nameless())
    with pytest.raises(InputError, match="task_names of the source 'arm' must return a list of texts"):
        register_task_source(Arm(1))
    assert list(known_sources()) == [*SOURCES, "robot"]


def test_the_same_class_again_takes_the_place_of_the_first(plugins):
    register_task_source(Robot("robot/old"))
    register_task_source(again := Robot("robot/new"))  # as when a cell of a notebook runs again
    assert find_source("robot/new") is again
    with pytest.raises(InputError, match="unknown task"):
        find_source("robot/old")


def test_the_first_source_answers_for_a_task_that_two_have(plugins):
    register_task_source(Robot(tasks.DEFAULT_TASK, "robot/pick"))
    register_task_source(Arm("robot/pick"))
    assert find_source(tasks.DEFAULT_TASK).name == "ogbench"
    assert find_source("robot/pick").name == "robot"


def test_known_sources_is_a_copy(plugins):
    known_sources().clear()
    assert list(known_sources()) == list(SOURCES)


def test_sources_of_installed_packages_are_found(plugins):
    plugins += [entry_point("robot", lambda: Robot), entry_point("arm", lambda: Arm("arm/lift"))]
    assert isinstance(find_source("robot/pick"), Robot)
    assert find_source("arm/lift").name == "arm"
    assert list(known_sources()) == [*SOURCES, "robot", "arm"]


def test_packages_are_loaded_once_whatever_task_is_asked_for(plugins):
    loaded = []
    plugins.append(entry_point("robot", lambda: loaded.append("robot") or Robot))
    assert loaded == []
    find_source(tasks.DEFAULT_TASK)  # a task that the library has itself
    assert loaded == ["robot"]
    for name in ("robot/pick", "no-such-task"):
        with pytest.raises(InputError) if name == "no-such-task" else pytest.MonkeyPatch.context():
            find_source(name)
    assert loaded == ["robot"]


def fail():
    raise ModuleNotFoundError("No module named 'robot_driver'")


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (fail, "ModuleNotFoundError: No module named 'robot_driver'"),
        (lambda: Broken, "RuntimeError: no licence"),
        (lambda: Failing(), "OSError: the robot is off"),
        (lambda: json, "InputError: .* is not a task source"),
        (lambda: object, "InputError: .* is not a task source"),
        (lambda: OtherRobot, r"InputError: the name 'robot' is that of .*\.Robot"),
    ],
)
def test_a_broken_package_is_reported_in_one_line_and_left_out(plugins, load, reason):
    plugins += [entry_point("robot", lambda: Robot), entry_point("bad", load), entry_point("arm", lambda: Arm)]
    with pytest.warns(RuntimeWarning, match=rf"the tasks of package:bad are left out \({reason}.*\)") as caught:
        sources = known_sources()
    assert [len(str(each.message).splitlines()) for each in caught] == [1]
    assert list(sources) == [*SOURCES, "robot", "arm"]
    assert find_source(tasks.DEFAULT_TASK).name == "ogbench"


@pytest.mark.parametrize("name", ["json.tool", "drol.tasks.d4rl.adroit", "os", "../x", "package:bad", ""])
def test_nothing_is_imported_because_of_a_name(plugins, monkeypatch, name):
    list(known_sources())
    before = set(sys.modules)
    monkeypatch.setattr(importlib, "import_module", lambda module: pytest.fail(f"{module} was imported"))
    with pytest.raises(InputError, match="unknown task"):
        load_task(name)
    assert set(sys.modules) == before


def test_importing_the_registry_loads_no_package_no_jax_and_no_simulator():
    code = (
        "import importlib.metadata as m, sys; m.entry_points = lambda **_: sys.exit('entry points were read'); "
        "import drol, drol.cli.main, drol.tasks, drol.tasks.catalogue; "
        "sys.exit(str([name for name in ('jax', 'mujoco', 'gymnasium', 'ogbench', 'h5py') if name in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.stderr == "[]\n"
