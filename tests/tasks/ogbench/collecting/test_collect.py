import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from drol.errors import InputError
from drol.tasks.experts import Expert, save_expert
from drol.tasks.ogbench.collecting.collect import COLLECTABLE, Progress, Team, check_experts, collect, parts_folder
from drol.tasks.ogbench.collecting.recipes import RECIPES
from drol.tasks.ogbench.names import EMBEDDED

NAME = "pointmaze-medium-navigate-v0"


def read(path):
    with np.load(path) as file:
        return {name: file[name] for name in file}


def members(path):
    """The content of an archive, without the dates and sizes around it."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def random_expert(input="ogbench-direction", input_size=29, action_size=8):
    kernel = np.random.default_rng(0).normal(size=(input_size, action_size)).astype(np.float32) / 5
    return Expert((kernel,), (np.zeros(action_size, np.float32),), "relu", "tanh", input)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Four trajectories of 60 rows by one process."""
    path = tmp_path_factory.mktemp("reference") / "mine.npz"
    collect(NAME, path, episodes=4, rows=60, processes=1)
    return members(path), members(path.with_name("mine-val.npz"))


def test_collecting_writes_the_shipped_trajectories_and_reports_each(tmp_path):
    path = tmp_path / "deeper" / "mine.npz"
    reported = []
    written = collect(NAME, path, episodes=1, processes=1, report=reported.append)
    assert written == {path: 1000, path.with_name("mine-val.npz"): 1000}
    assert reported == [Progress(0, 2, 0), Progress(1, 2, 1001), Progress(2, 2, 2002)]
    assert sorted(each.name for each in path.parent.iterdir()) == ["mine-val.npz", "mine.npz"]
    embedded = read(EMBEDDED / f"{NAME}.npz")
    for number, each in enumerate(written):
        arrays = read(each)
        assert arrays.keys() == embedded.keys()
        for name, array in arrays.items():
            assert array.dtype == embedded[name].dtype
            np.testing.assert_array_equal(array, embedded[name][1001 * number : 1001 * (number + 1)], err_msg=name)


def test_the_arrays_do_not_depend_on_the_number_of_processes(tmp_path, reference):
    path = tmp_path / "mine.npz"
    collect(NAME, path, episodes=4, rows=60, processes=3)
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference


def test_an_interrupted_collection_goes_on_where_it_was(tmp_path, reference):
    path = tmp_path / "mine.npz"

    def stop_after_two(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(NAME, path, episodes=4, rows=60, processes=2, report=stop_after_two)
    assert multiprocessing.active_children() == []
    assert [each.name for each in tmp_path.iterdir()] == ["mine.parts"]
    reported = []
    collect(NAME, path, episodes=4, rows=60, processes=1, report=reported.append)
    assert reported[0].done >= 2
    assert reported[-1].rows == 60 * (5 - reported[0].done)
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference
    assert not parts_folder(path).exists()


def test_more_episodes_may_be_asked_for_after_an_interruption(tmp_path, reference):
    path = tmp_path / "mine.npz"

    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(NAME, path, episodes=2, rows=60, processes=1, report=stop)
    collect(NAME, path, episodes=4, rows=60, processes=1)
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference


def test_a_damaged_trajectory_is_collected_again(tmp_path, reference):
    path = tmp_path / "mine.npz"

    def damage(progress):
        if progress.done == 3:
            part = sorted(parts_folder(path).glob("0*.npz"))[0]
            part.write_bytes(part.read_bytes()[:-100])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(NAME, path, episodes=4, rows=60, processes=1, report=damage)
    reported = []
    collect(NAME, path, episodes=4, rows=60, processes=1, report=reported.append)
    assert reported[0].notes == ("000000.npz is damaged and collected again",)
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference


def test_a_process_that_dies_is_replaced(tmp_path, reference):
    path, killed = tmp_path / "mine.npz", []

    def kill_one(progress):
        if progress.done == 1 and not killed:
            victim = multiprocessing.active_children()[0]
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    collect(NAME, path, episodes=4, rows=60, processes=1, report=kill_one)
    assert killed
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference


def test_a_killed_command_loses_only_what_was_in_flight_and_leaves_no_process(tmp_path, reference):
    path = tmp_path / "mine.npz"
    code = f"""if True:
        import multiprocessing
        from pathlib import Path
        from drol.tasks.ogbench.collecting.collect import collect
        def say(progress):
            print(progress.done, *[child.pid for child in multiprocessing.active_children()], flush=True)
        collect({NAME!r}, Path({str(path)!r}), episodes=4, rows=60, processes=2, report=say)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as command:
        for line in command.stdout:
            done, *workers = map(int, line.split())
            if done >= 1:
                command.kill()
                break
    assert workers
    deadline = time.monotonic() + 60
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < deadline, "a process outlived the command that started it"
        time.sleep(0.05)
    reported = []
    collect(NAME, path, episodes=4, rows=60, processes=1, report=reported.append)
    assert reported[0].done >= done
    assert (members(path), members(tmp_path / "mine-val.npz")) == reference
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine-val.npz", "mine.npz"]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_an_environment_that_cannot_be_made_is_one_line(tmp_path):
    recipe = dataclasses.replace(RECIPES[NAME], environment="pointmaze-nowhere-v0")
    with Team(1, (recipe, (), 0, tmp_path)) as team, pytest.raises(InputError) as caught:
        list(team.collect([7]))
    assert str(caught.value).startswith("collecting trajectory 7 failed (")
    assert "pointmaze-nowhere" in str(caught.value)


def test_ants_are_collected_with_an_expert_of_a_file(tmp_path):
    save_expert(random_expert(), tmp_path / "walker")
    path = tmp_path / "ant.npz"
    collect("antmaze-medium-navigate-v0", path, episodes=1, rows=20, processes=1, experts=[tmp_path / "walker"])
    arrays = read(path)
    assert arrays["observations"].shape == (20, 29)
    assert arrays["actions"].shape == (20, 8)


@pytest.mark.parametrize("existing", ["mine.npz", "mine-val.npz"])
def test_an_existing_file_is_refused_and_left_alone(tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    with pytest.raises(InputError) as caught:
        collect(NAME, tmp_path / "mine.npz", episodes=1)
    assert str(caught.value) == f"{tmp_path / existing} exists already; choose another --out, nothing was written"
    assert [each.name for each in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("antmaze-x-navigate-v0", {}, "cannot collect 'antmaze-x-navigate-v0'; it must be one of"),
        (NAME, {"episodes": 0}, "episodes is 0; it must be at least 1"),
        (NAME, {"seed": -1}, "seed is -1; it must be at least 0"),
        (NAME, {"processes": 0}, "processes is 0; it must be at least 1"),
        (NAME, {"rows": 1}, "rows is 1; it must be at least 2"),
        (NAME, {"path": "mine.hdf5"}, "the file to write is"),
        ("antmaze-large-navigate-v0", {}, "antmaze-large-navigate-v0 needs a policy that can walk: --expert FOLDER"),
    ],
)
def test_what_cannot_be_collected_is_refused_before_anything_is_written(tmp_path, name, settings, message):
    path = tmp_path / settings.pop("path", "mine.npz")
    with pytest.raises(InputError) as caught:
        collect(name, path, **({"episodes": 1} | settings))
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


WALKER, DRIBBLER = random_expert(), random_expert("ogbench-ball", 42)


@pytest.mark.parametrize(
    ("name", "experts", "message"),
    [
        (NAME, [WALKER], "is collected by an oracle of OGBench; leave --expert out"),
        ("antmaze-large-navigate-v0", [WALKER, WALKER], "2 experts were given; antmaze-large-navigate-v0 needs one"),
        ("antmaze-large-navigate-v0", [DRIBBLER], "input is ogbench-ball; .* observation or ogbench-direction"),
        ("antmaze-large-navigate-v0", [random_expert(input_size=30)], "takes 30 numbers .* needs 29 and 8"),
        ("humanoidmaze-medium-stitch-v0", [WALKER], "takes 29 numbers .* needs 69 and 21"),
        ("antsoccer-arena-navigate-v0", [DRIBBLER], "needs one that walks and perhaps one with input ogbench-ball"),
        ("antsoccer-arena-navigate-v0", [WALKER, DRIBBLER, DRIBBLER], "3 experts were given"),
    ],
)
def test_experts_that_do_not_fit_are_refused(name, experts, message):
    with pytest.raises(InputError, match=message):
        check_experts(name, RECIPES[name], experts)


def test_experts_that_fit_are_taken():
    check_experts("antsoccer-arena-navigate-v0", RECIPES["antsoccer-arena-navigate-v0"], [WALKER, DRIBBLER])
    check_experts("antsoccer-arena-stitch-v0", RECIPES["antsoccer-arena-stitch-v0"], [WALKER])
    check_experts(NAME, RECIPES[NAME], [])
    humanoid = "visual-humanoidmaze-large-navigate-v0"
    check_experts(humanoid, RECIPES[humanoid], [random_expert("observation", 69, 21)])


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_collected(tmp_path):
    (tmp_path / "file").write_text("")
    reported = []
    with pytest.raises((InputError, OSError)):
        collect(NAME, tmp_path / "file" / "mine.npz", episodes=1, report=reported.append)
    assert reported == []


def test_every_state_based_maze_is_a_task_of_ogbench():
    from drol.tasks.ogbench.names import task_names

    known = task_names()
    for name in COLLECTABLE:
        if name.startswith(("pointmaze", "antmaze", "humanoidmaze")):
            assert name.replace("-v0", "-singletask-v0") in known


def test_the_processes_import_no_jax():
    code = "import sys, drol.tasks.ogbench.collecting.worker, drol.tasks.ogbench.collecting.mazes, drol.tasks.ogbench.collecting.soccer, "
    code += "drol.tasks.ogbench.collecting.manipulation, drol.tasks.ogbench.collecting.collect, drol.cli.data.collect; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
