import re
import subprocess
import sys

import numpy as np
import pytest

from drol.data.readers.hdf5 import write_hdf5
from drol.errors import InputError
from drol.presets.settings import TASKS
from drol.tasks import find_source, load_task
from drol.tasks.catalogue import find_dataset_entry
from drol.tasks.d4rl import SOURCE
from drol.tasks.d4rl.names import DATASET_URLS, SHA256, SIZES, file_name, find_dataset


def test_the_tasks_are_those_of_the_paper():
    assert set(SOURCE.task_names()) == {task for task in TASKS if "singletask" not in task}
    assert len(SOURCE.task_names()) == 18
    assert all(find_source(name) is SOURCE for name in SOURCE.task_names())
    with pytest.raises(InputError, match=r"unknown task of D4RL 'pen-humane-v1'; did you mean pen-human-v1\?"):
        SOURCE.load("pen-humane-v1")


def test_file_names_are_official():
    files = {name: url.rsplit("/", 1)[1] for name, url in DATASET_URLS.items()}
    assert len(set(files.values())) == 18
    assert files["antmaze-umaze-v2"] == "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5"
    assert files["antmaze-large-play-v2"] == (
        "Ant_maze_hardest-maze_noisy_multistart_True_multigoal_False_sparse_fixed.hdf5"
    )
    assert files["pen-human-v1"] == "pen-human-v1.hdf5"
    assert DATASET_URLS["door-cloned-v1"].endswith("/offline_rl/hand_dapg_v1/door-cloned-v1.hdf5")


def test_a_dataset_is_looked_for_where_d4rl_keeps_it(tmp_path, monkeypatch):
    monkeypatch.delenv("D4RL_DATASET_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError) as caught:
        load_task("pen-human-v1")
    assert str(caught.value) == (
        f"the dataset pen-human-v1.hdf5 of pen-human-v1 is not in {tmp_path}/.d4rl/datasets; "
        "get it with `drol data download pen-human-v1`, put it there, or name a file with --dataset"
    )
    with pytest.raises(InputError) as caught:
        load_task("pen-expert-v1")
    collect = "make one with `drol data collect pen-expert-v1 --expert FOLDER` (about 6 to 22 min on one core)"
    assert collect in str(caught.value)
    monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pen-human-v1.hdf5").write_bytes(b"")
    assert find_dataset("pen-human-v1") == tmp_path / "other" / "pen-human-v1.hdf5"


def test_every_dataset_can_be_listed_and_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path))
    entries = SOURCE.datasets()
    assert [entry.name for entry in entries] == SOURCE.task_names()
    for entry in entries:
        assert entry.folder == tmp_path
        assert not entry.present
        assert SOURCE.file_addresses(entry.files[0]) == [DATASET_URLS[entry.name]]
        assert (int(entry.observation), entry.action) == SIZES[entry.name.split("-")[0]]
    _, entry = find_dataset_entry("door-human-v1")
    assert entry.transitions == 6729
    entry.path.write_bytes(b"")
    assert find_dataset_entry("door-human-v1")[1].present


def test_only_whole_d4rl_files_pass_the_check(tmp_path):
    rows = {
        "observations": np.zeros((4, 3)),
        "actions": np.zeros((4, 2)),
        "rewards": np.zeros(4),
        "terminals": np.zeros(4, bool),
        "timeouts": np.zeros(4, bool),
    }
    write_hdf5(tmp_path / "whole.hdf5", rows)
    SOURCE.check_file(tmp_path / "whole.hdf5")
    write_hdf5(tmp_path / "short.hdf5", rows | {"rewards": np.zeros(3)})
    (tmp_path / "cut.hdf5").write_bytes((tmp_path / "whole.hdf5").read_bytes()[:-1000])
    for name in ("short", "cut"):
        with pytest.raises(InputError):
            SOURCE.check_file(tmp_path / f"{name}.hdf5")


def test_what_processes_import_is_without_jax():
    pytest.importorskip("gymnasium_robotics")
    modules = ", ".join(f"drol.tasks.d4rl.{name}" for name in ("names", "hdf5_rows", "antmaze", "adroit"))
    code = f"import sys, {modules}; sys.exit('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_published_sums_are_known_for_all_but_relocate():
    known = [name for name in DATASET_URLS if SOURCE.file_sha256(file_name(name))]
    assert sorted(set(DATASET_URLS) - set(known)) == [f"relocate-{kind}-v1" for kind in ("cloned", "expert", "human")]
    assert len({SHA256[name] for name in known}) == 15
    assert all(re.fullmatch("[0-9a-f]{64}", SHA256[name]) for name in known)
    # By TensorFlow Datasets, tensorflow_datasets/d4rl/d4rl_adroit_pen/checksums.tsv.
    pen = "209e345b2150b633f30a11612612c60f49e941f127ce6c4dc0cd790501c46f9f"
    assert SOURCE.file_sha256("pen-human-v1.hdf5") == pen
