import dataclasses
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from random_experts import random_expert

from drol.errors import InputError
from drol.tasks import load_task
from drol.tasks.ogbench.names import EMBEDDED, all_names
from drol.tasks.ogbench.recipes import COLLECTABLE, RECIPES
from drol_reproduction.collecting import collect as collect_dataset
from drol_reproduction.collecting.collected import read_record
from drol_reproduction.collecting.ogbench import collect as collecting
from drol_reproduction.collecting.ogbench.collect import check_experts, collect
from drol_reproduction.collecting.ogbench.team import Team
from drol_reproduction.collecting.ogbench.unfinished import unfinished_folder
from drol_reproduction.experts.expert import save_expert

NAME = "pointmaze-medium-navigate-v0"


def read(path):
    with np.load(path) as file:
        return {name: file[name] for name in file}


def members(path):
    """The content of an archive, without the dates and sizes around it."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def both(path):
    """The content of the training and of the validation file."""
    return members(path), members(path.with_name("mine-val.npz"))


class Reports:
    """The calls of `report`; `act` is called with each number of finished trajectories."""

    def __init__(self, act=lambda done: None):
        self.act, self.calls = act, []

    def __call__(self, done, total, what):
        self.calls.append((done, total, what))
        self.act(done)


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine.npz"


@pytest.fixture(scope="module")
def reference(tmp_path_factory, collect_here):
    """Four trajectories of 60 rows."""
    path = tmp_path_factory.mktemp("reference") / "mine.npz"
    collect_here(NAME, path, episodes=4, rows=60)
    return both(path)


def interrupt_after(count, collect, path, **settings):
    """Collect until some trajectories are done; the message of the interruption."""

    def stop(done):
        if done == count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        collect(NAME, path, **({"episodes": 4, "rows": 60, "report": Reports(stop)} | settings))
    return str(caught.value)


def test_collecting_writes_the_shipped_trajectories_and_reports_each(tmp_path, collect_here):
    path = tmp_path / "deeper" / "mine.npz"
    reports = Reports()
    written = collect_here(NAME, path, episodes=1, report=reports)
    assert written == {path: 1000, path.with_name("mine-val.npz"): 1000}
    assert reports.calls == [(0, 2, ""), (1, 2, "1,000 transitions"), (2, 2, "2,000 transitions")]
    assert sorted(each.name for each in path.parent.iterdir()) == ["mine-val.npz", "mine.json", "mine.npz"]
    embedded = read(EMBEDDED / f"{NAME}.npz")
    for number, each in enumerate(written):
        arrays = read(each)
        assert arrays.keys() == embedded.keys()
        for name, array in arrays.items():
            assert array.dtype == embedded[name].dtype
            np.testing.assert_array_equal(array, embedded[name][1001 * number : 1001 * (number + 1)], err_msg=name)


def test_the_arrays_do_not_depend_on_the_processes(mine, reference):
    collect(NAME, mine, episodes=4, rows=60, processes=2)
    assert both(mine) == reference


def test_an_interrupted_collection_goes_on_where_it_was(mine, tmp_path, reference, collect_here, caplog):
    message = interrupt_after(2, collect, mine, processes=2)
    assert message.endswith(f" of 5 trajectories are in {tmp_path / 'mine.parts'}, the same command resumes")
    assert int(message.split()[0]) >= 2
    assert multiprocessing.active_children() == []
    assert [each.name for each in tmp_path.iterdir()] == ["mine.parts"]
    reports = Reports()
    collect_here(NAME, mine, episodes=4, rows=60, report=reports)
    before = reports.calls[0][0]
    assert before >= 2
    assert caplog.messages == [f"going on after {before} of 5 trajectories"]
    assert reports.calls[-1] == (5, 5, f"{59 * (5 - before)} transitions")
    assert both(mine) == reference
    assert not unfinished_folder(mine).exists()


def test_more_episodes_may_be_asked_for_after_an_interruption(mine, reference, collect_here):
    interrupt_after(2, collect_here, mine, episodes=2)
    collect_here(NAME, mine, episodes=4, rows=60)
    assert both(mine) == reference


def test_a_damaged_trajectory_is_collected_again(mine, reference, collect_here, caplog):
    interrupt_after(3, collect_here, mine)
    part = unfinished_folder(mine) / "000000.npz"
    part.write_bytes(part.read_bytes()[:-100])
    collect_here(NAME, mine, episodes=4, rows=60)
    assert caplog.messages == ["000000.npz is damaged and is collected again", "going on after 2 of 5 trajectories"]
    assert both(mine) == reference


def test_a_process_that_dies_is_replaced(mine, reference):
    killed = []

    def kill_one(done):
        if done == 1 and not killed:
            victim = multiprocessing.active_children()[0]
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    collect(NAME, mine, episodes=4, rows=60, processes=1, report=Reports(kill_one))
    assert killed
    assert both(mine) == reference


def test_a_killed_command_loses_only_what_was_in_flight_and_leaves_no_process(mine, tmp_path, reference, collect_here):
    code = f"""if True:
        import multiprocessing
        from pathlib import Path
        from drol_reproduction.collecting.ogbench.collect import collect
        def say(done, total, what):
            print(done, *[child.pid for child in multiprocessing.active_children()], flush=True)
        collect({NAME!r}, Path({str(mine)!r}), episodes=4, rows=60, processes=2, report=say)
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
    reports = Reports()
    collect_here(NAME, mine, episodes=4, rows=60, report=reports)
    assert reports.calls[0][0] >= done
    assert both(mine) == reference
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine-val.npz", "mine.json", "mine.npz"]


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
    save_expert(random_expert(), tmp_path / "walker")  # each process gets a copy of the expert
    path = tmp_path / "ant.npz"
    collect("antmaze-medium-navigate-v0", path, episodes=1, rows=20, processes=1, experts=[tmp_path / "walker"])
    arrays = read(path)
    assert arrays["observations"].shape == (20, 29)
    assert arrays["actions"].shape == (20, 8)
    record = read_record(path)
    assert record["experts"] == [{"name": "walker", "sha256": random_expert().digest()}]
    assert record["recipe"] | {"rows": 20, "noise": 0.2, "body": "ant"} == record["recipe"]
    assert record["versions"].keys() >= {"ogbench", "mujoco"}
    options = "--episodes 1 --seed 0 --expert walker --out ant.npz"
    assert record["command"] == f"drol data collect antmaze-medium-navigate-v0 {options}"


def test_data_of_another_expert_has_another_name_and_loads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(collecting, "find_recipe", lambda name: dataclasses.replace(RECIPES[name], rows=20))
    save_expert(random_expert(), tmp_path / "walker")
    name = "antmaze-medium-navigate-v0"
    written = collect_dataset(name, episodes=1, processes=1, experts=[Path("walker")])
    assert [str(path) for path in written] == [f"{name}-walker.npz", f"{name}-walker-val.npz"]
    task = load_task("antmaze-medium-navigate-singletask-task1-v0", f"{name}-walker.npz")
    assert (task.train.size, task.validation.size) == (19, 19)


def test_a_collection_that_was_killed_before_its_record_is_finished_by_the_same_command(
    mine, monkeypatch, collect_here
):
    def fail(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(collecting, "write_record", fail)
        with pytest.raises(MemoryError):
            collect_here(NAME, mine, episodes=1, rows=10)
    assert read_record(mine) is None
    collect_here(NAME, mine, episodes=1, rows=10)
    assert read_record(mine)["files"].keys() == {"mine.npz", "mine-val.npz"}
    assert not unfinished_folder(mine).exists()


@pytest.mark.parametrize("existing", ["mine.npz", "mine-val.npz", "mine.json"])
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
        ("antmaze-x-navigate-v0", {}, "unknown dataset of OGBench 'antmaze-x-navigate-v0'; did you mean antmaze-"),
        (NAME, {"episodes": 0}, "episodes is 0; it must be at least 1"),
        (NAME, {"seed": -1}, "seed is -1; it must be at least 0"),
        (NAME, {"processes": 0}, "processes is 0; it must be at least 1"),
        (NAME, {"rows": 1}, "rows is 1; it must be at least 2"),
        (NAME, {"path": "mine.hdf5"}, "the file to write is"),
        ("humanoidmaze-large-navigate-v0", {}, "humanoidmaze-large-navigate-v0 needs a policy that can walk: --expert"),
    ],
)
def test_what_cannot_be_collected_is_refused_before_anything_is_written(tmp_path, name, settings, message):
    path = tmp_path / settings.pop("path", "mine.npz")
    with pytest.raises(InputError) as caught:
        collect(name, path, **({"episodes": 1} | settings))
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


WALKER = random_expert()


@pytest.mark.parametrize(
    ("name", "experts", "message"),
    [
        (NAME, [WALKER], "is collected by an oracle of OGBench; leave --expert out"),
        ("antmaze-large-navigate-v0", [WALKER, WALKER], "2 experts were given; antmaze-large-navigate-v0 needs one"),
        ("antmaze-large-navigate-v0", [random_expert((30, 8))], "takes 30 numbers .* needs 29 and 8"),
        ("humanoidmaze-medium-stitch-v0", [WALKER], "takes 29 numbers .* needs 69 and 21"),
    ],
)
def test_experts_that_do_not_fit_are_refused(name, experts, message):
    with pytest.raises(InputError, match=message):
        check_experts(name, RECIPES[name], experts)


def test_experts_that_fit_are_taken():
    check_experts("antmaze-large-navigate-v0", RECIPES["antmaze-large-navigate-v0"], [WALKER])
    check_experts(NAME, RECIPES[NAME], [])
    humanoid = "visual-humanoidmaze-large-navigate-v0"
    check_experts(humanoid, RECIPES[humanoid], [random_expert((69, 21), input="observation")])


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_collected(tmp_path):
    (tmp_path / "file").write_text("")
    reports = Reports()
    with pytest.raises((InputError, OSError)):
        collect(NAME, tmp_path / "file" / "mine.npz", episodes=1, report=reports)
    assert reports.calls == []


def test_every_dataset_that_can_be_collected_has_a_task():
    assert {name.replace("-v0", "-singletask-v0") for name in COLLECTABLE} <= all_names().keys()


def test_the_processes_import_no_jax():
    folder = "drol_reproduction.collecting.ogbench"
    modules = [f"{folder}.{name}" for name in ("collecting_process", "mazes", "manipulation", "collect")]
    code = f"import sys, {', '.join(modules)}, drol_reproduction.cli.collect; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels are of x86")
def test_arrays_do_not_depend_on_the_kernels_that_openblas_chooses(mine, tmp_path, monkeypatch):
    collect("cube-single-play-v0", mine, episodes=1, rows=40, processes=1)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    other = tmp_path / "other.npz"
    collect("cube-single-play-v0", other, episodes=1, rows=40, processes=1)
    assert members(mine) == members(other)
