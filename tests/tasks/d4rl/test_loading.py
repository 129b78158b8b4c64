import functools
import pickle
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from fake_environments import draws_globally
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("h5py")
pytest.importorskip("gymnasium_robotics")

from drol.data.readers.hdf5 import write_hdf5
from drol.errors import InputError
from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.worker import Reset, Seen, Step
from drol.tasks import load_task, packages
from drol.tasks.base import Episode
from drol.tasks.d4rl import SOURCE
from drol.tasks.d4rl.loading import REFERENCE_RETURNS, normalised_score, read_dataset
from drol.tasks.d4rl.names import SIZES


def random_file(path, terminals, timeouts, sizes=(3, 2), changes=None):
    """A D4RL file of random rows with these flags."""
    generator = np.random.default_rng(0)
    count = len(terminals)
    rows = {
        "observations": generator.normal(size=(count, sizes[0])).astype(np.float32),
        "actions": generator.uniform(-1.3, 1.3, (count, sizes[1])).astype(np.float32),
        "rewards": generator.normal(size=count).astype(np.float32),
        "terminals": np.asarray(terminals, bool),
        "timeouts": np.asarray(timeouts, bool),
    } | (changes or {})
    path.unlink(missing_ok=True)
    write_hdf5(path, {name: array for name, array in rows.items() if array is not None})
    return rows


def prepare_plainly(rows, antmaze):
    """The transitions of the FQL family, row by row as its description says; `end` is its mark of trajectory ends."""
    found = []
    for i in range(len(rows["rewards"]) - 1):
        if rows["timeouts"][i]:
            continue
        found.append(
            {
                "observation": rows["observations"][i],
                "action": np.clip(rows["actions"][i], -1 + 1e-5, 1 - 1e-5),
                "reward": rows["rewards"][i] - 1 if antmaze else rows["rewards"][i],
                "continues": 1 - float(rows["terminals"][i]),
                "next_observation": rows["observations"][i + 1],
            }
        )
    for one, following in zip(found, [*found[1:], None], strict=True):
        apart = following is None or np.linalg.norm(following["observation"] - one["next_observation"]) > 1e-6
        one["end"] = apart or (not antmaze and one["continues"] == 0)
        one["next_action"] = one["action"] if following is None else following["action"]
    return found


COUNT = 12  # rows of every random file
FLAGS = st.lists(st.sampled_from(["", "", "", "terminal", "timeout", "both"]), min_size=COUNT, max_size=COUNT)


@pytest.mark.parametrize("antmaze", [True, False])
@settings(deadline=None, max_examples=40)
@given(flags=FLAGS)
@example(flags=[""] * COUNT)
@example(flags=["", "terminal", "timeout", "", "both", "", "terminal", "", "timeout", "", "", "terminal"])
@example(flags=["terminal", "terminal", "", "timeout", "", "", "", "timeout", "", "terminal", "terminal", "timeout"])
def test_transitions_are_those_of_the_fql_family(tmp_path_factory, antmaze, flags):
    path = tmp_path_factory.getbasetemp() / "synthetic.hdf5"
    rows = random_file(
        path, [flag in ("terminal", "both") for flag in flags], [flag in ("timeout", "both") for flag in flags]
    )
    expected = prepare_plainly(rows, antmaze)
    if not expected:
        with pytest.raises(InputError, match="hold no transition"):
            read_dataset(path, antmaze)
        return
    dataset = jax.tree.map(np.asarray, read_dataset(path, antmaze))  # so that no shape is compiled
    assert dataset.size == len(expected)
    found = dataset.take(np.arange(dataset.size))
    for name in ("observation", "action", "reward", "continues", "next_observation"):
        np.testing.assert_array_equal(
            getattr(found, name), np.asarray([one[name] for one in expected], np.float32), err_msg=name
        )
    ends = np.asarray([one["end"] for one in expected])
    np.testing.assert_array_equal(found.next_action_known, 1.0 - ends)
    inside = np.flatnonzero(~ends)
    np.testing.assert_array_equal(
        np.asarray(found.next_action)[inside],
        np.asarray([expected[i]["next_action"] for i in inside], np.float32).reshape(len(inside), 2),
    )


def test_columns_and_other_types_are_read_as_d4rl_reads_them(tmp_path):
    flags = [False, True, False, False], [False, False, True, False]
    plain = random_file(tmp_path / "plain.hdf5", *flags)
    odd = {
        "rewards": plain["rewards"].astype(np.float64)[:, None],
        "terminals": plain["terminals"].astype(np.float32)[:, None],
        "timeouts": plain["timeouts"].astype(np.uint8),
    }
    random_file(tmp_path / "odd.hdf5", *flags, changes=odd)
    first, second = (read_dataset(tmp_path / name, False) for name in ("plain.hdf5", "odd.hdf5"))
    assert first.fingerprint() == second.fingerprint()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timeouts": None}, "lacks ['timeouts']"),
        ({"rewards": np.zeros(3, np.float32)}, "arrays of different lengths"),
        ({"rewards": np.float32(1.0)}, "arrays of different lengths"),
        ({"timeouts": np.zeros((4, 2), bool)}, "arrays of different lengths"),
        ({"observations": np.full((4, 3), np.nan, np.float32)}, "observation has 12 values that are NaN or infinite"),
        ({"actions": np.zeros(4, np.float32)}, "action has shape (4,)"),
    ],
)
def test_unusable_files_are_refused_in_one_line(tmp_path, changes, message):
    if "rewards" in changes and not np.ndim(changes["rewards"]):  # compression is for arrays only
        h5py = pytest.importorskip("h5py")
        random_file(tmp_path / "data.hdf5", [False] * 4, [False] * 4, changes={"rewards": None})
        with h5py.File(tmp_path / "data.hdf5", "a") as file:
            file["rewards"] = changes["rewards"]
    else:
        random_file(tmp_path / "data.hdf5", [False] * 4, [False] * 4, changes=changes)
    with pytest.raises(InputError) as caught:
        read_dataset(tmp_path / "data.hdf5", False)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_one_row_is_refused(tmp_path):
    random_file(tmp_path / "data.hdf5", [False], [False])
    with pytest.raises(InputError, match="has 1 rows; a transition needs two"):
        read_dataset(tmp_path / "data.hdf5", True)


@pytest.fixture(scope="module", params=["antmaze-umaze-v2", "pen-cloned-v1", "door-human-v1"])
def task(request, tmp_path_factory):
    """Tasks with a small file of random rows."""
    path = tmp_path_factory.mktemp("d4rl") / "data.hdf5"
    random_file(path, [False] * 9, [False] * 4 + [True] + [False] * 4, SIZES[request.param.split("-")[0]])
    return load_task(request.param, path)


def test_a_task_is_data_an_environment_and_a_score(task):
    environment = pickle.loads(pickle.dumps(task.make_environment))()  # as a process receives it
    observation, _ = environment.reset(seed=0)
    assert observation.shape == task.train.spec.observation_shape
    assert environment.action_space.shape == (task.train.spec.action_size,)
    assert (environment.action_space.low == -1).all()
    assert (environment.action_space.high == 1).all()
    environment.close()
    assert task.train.size == 7
    assert task.validation is None
    assert task.score_name == ("success (%)" if task.maze else "normalised score")
    assert (task.maze is not None) == task.name.startswith("antmaze")
    assert task.environment_modules[:2] == ("gymnasium", "mujoco")
    assert task.environment_modules[-1] == f"drol.tasks.d4rl.{'antmaze' if task.maze else 'adroit'}"


def test_the_environment_is_made_without_the_data(task):
    environment = SOURCE.make_environment(task.name)()
    assert environment.reset(seed=0)[0].shape == task.train.spec.observation_shape
    environment.close()


def test_environments_share_a_process_because_their_steps_leave_the_global_generators_alone(task):
    assert task.shares_process
    environment = SOURCE.make_environment(task.name)()
    environment.reset(seed=0)
    assert not draws_globally(environment)
    environment.close()


def test_an_episode_runs_in_a_process_of_its_own(task):
    process = EnvironmentProcess(task.make_environment, 120.0, task.environment_modules)
    answers = []
    try:
        for request in (Reset(5), Step(np.zeros(task.train.spec.action_size)), Reset(5)):
            process.send(request)
            answers.append(process.receive())
    finally:
        process.stop()
    assert all(isinstance(answer, Seen) for answer in answers), answers
    first, step, again = answers
    np.testing.assert_array_equal(first.observation, again.observation)
    assert not np.array_equal(first.observation, step.observation)
    assert not step.done


def test_a_file_of_another_task_is_refused(tmp_path):
    random_file(tmp_path / "data.hdf5", [False] * 4, [False] * 4, SIZES["door"])
    with pytest.raises(InputError) as caught:
        load_task("pen-expert-v1", tmp_path / "data.hdf5")
    assert str(caught.value) == (
        f"dataset file {tmp_path}/data.hdf5 has observations of 39 and actions of 28 numbers; "
        "those of pen-expert-v1 have 45 and 24"
    )


@pytest.mark.parametrize("kind", REFERENCE_RETURNS)
def test_the_reference_returns_are_0_and_100(kind):
    score = functools.partial(normalised_score, *REFERENCE_RETURNS[kind])
    worst, best = (Episode(0, total, 100, False) for total in REFERENCE_RETURNS[kind])
    assert score([worst]) == pytest.approx(0)
    assert score([best]) == pytest.approx(100)
    assert score([worst, best, Episode(0, 1e9, 3, False, "it broke"), best]) == pytest.approx(50)


@pytest.mark.parametrize(
    ("task_name", "package"), [("antmaze-umaze-v2", "ogbench"), ("pen-human-v1", "gymnasium_robotics")]
)
def test_without_its_simulator_the_extra_is_named(tmp_path, monkeypatch, task_name, package):
    (tmp_path / "data.hdf5").write_bytes(b"")
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(packages, "sys", SimpleNamespace(version_info=(3, 12, 4)))
    for module in ("drol.tasks.d4rl.antmaze", "drol.tasks.d4rl.adroit"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError) as caught:
        load_task(task_name, tmp_path / "data.hdf5")
    assert str(caught.value) == (
        f"D4RL's environments need the package {package}; install them with: pip install 'drol[d4rl]'"
    )
