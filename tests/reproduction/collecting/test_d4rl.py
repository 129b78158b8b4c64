import numpy as np
import pytest
from random_experts import random_expert
from shared_files import expert_weights

pytest.importorskip("gymnasium_robotics")
pytest.importorskip("h5py")

from drol.data.readers.hdf5 import read_hdf5
from drol.errors import InputError
from drol.tasks import load_task
from drol.tasks.d4rl.environments import GOAL_CELLS, MAPS, cell_centre
from drol_reproduction.collecting import d4rl as collecting
from drol_reproduction.collecting.collected import content_sha256, read_record
from drol_reproduction.collecting.d4rl import Guide, collect, collect_antmaze, free_cells, neighbours
from drol_reproduction.experts.expert import expert_of_weights, save_expert

NAMES = ("observations", "actions", "rewards", "terminals", "timeouts")


@pytest.fixture(scope="module")
def pen(tmp_path_factory):
    """A hand that drops the pen now and then."""
    folder = tmp_path_factory.mktemp("experts") / "pen"
    hand = random_expert(
        (45, 8, 8, 24),
        activation="tanh",
        output="none",
        input="observation",
        more={"log_std": np.full(24, -0.5, np.float32)},
    )
    save_expert(hand, folder)
    return folder


@pytest.fixture(scope="module")
def ant():
    return random_expert((29, 8, 8, 8), direction_scale=10.0)


def test_collected_files_are_read_by_their_task(tmp_path, pen):
    path = tmp_path / "pen.hdf5"
    reported = []
    written = collect("pen-expert-v1", path, [pen], 4, report=lambda *progress: reported.append(progress))
    assert [each[:2] for each in reported] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pen.hdf5", "pen.json"]
    rows = read_hdf5(path, NAMES)
    ends = rows["terminals"] | rows["timeouts"]
    assert reported[-1][2] == f"{len(ends)} rows"
    assert ends.sum() == 4
    assert ends[-1]
    assert not (rows["terminals"] & rows["timeouts"]).any()
    assert rows["terminals"].any()  # the pen was dropped
    assert np.abs(rows["actions"]).max() <= 1
    task = load_task("pen-expert-v1", path)
    dropped = int(rows["timeouts"].sum()) + int(not rows["timeouts"][-1])  # rows without a transition
    assert task.train.size == len(ends) - dropped
    assert written == {path: task.train.size}
    found = task.train.take(np.arange(task.train.size))
    assert (np.asarray(found.continues) == 0).sum() == rows["terminals"][:-1].sum()


def test_the_same_seed_gives_the_same_rows(tmp_path, pen):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        collect("pen-expert-v1", tmp_path / f"{name}.hdf5", [pen], 1, seed)
    first, again, other = (read_hdf5(tmp_path / f"{name}.hdf5", NAMES) for name in "abc")
    for name in NAMES:
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["observations"][0], other["observations"][0])
    sums = [content_sha256(tmp_path / f"{name}.hdf5") for name in "abc"]
    assert sums[0] == sums[1] != sums[2]
    record = read_record(tmp_path / "c.hdf5")
    assert record["files"] == {"c.hdf5": {"transitions": record["files"]["c.hdf5"]["transitions"], "sha256": sums[2]}}
    assert (record["seed"], record["experts"][0]["name"]) == (1, pen.name)


@pytest.mark.parametrize("name", ["antmaze-umaze-v2", "antmaze-large-diverse-v2", "antmaze-medium-play-v2"])
def test_trajectories_start_where_d4rl_starts_them(monkeypatch, ant, name):
    monkeypatch.setattr(collecting, "ANT_ROWS", 20)
    rows = collect_antmaze(name, ant, 6, 0)
    starts = rows["observations"][::20, :2]
    assert np.flatnonzero(rows["timeouts"]).tolist() == [19, 39, 59, 79, 99, 119]
    maze = name.split("-")[1]
    if maze == "umaze":
        assert np.abs(starts).max() <= 0.1
    else:
        centres = np.asarray([cell_centre(cell) for cell in free_cells(MAPS[maze])])
        offsets = starts[:, None] - centres
        assert ((offsets >= 0) & (offsets <= 1)).all(-1).any(-1).all()
        assert len({tuple(np.round(start)) for start in starts}) > 1
    np.testing.assert_array_equal(rows["rewards"], rows["terminals"])


def test_ants_are_rewarded_where_they_pass_the_goal_and_go_on(monkeypatch, ant, tmp_path):
    monkeypatch.setattr(collecting, "ANT_ROWS", 20)
    monkeypatch.setitem(collecting.GOAL_CELLS, "umaze", (1, 1))
    monkeypatch.setattr(collecting, "GOAL_RADIUS", 12.0)  # reached from the start
    rows = collect_antmaze("antmaze-umaze-v2", ant, 2, 0)
    assert rows["terminals"][:-1].all()
    collecting.write_hdf5(tmp_path / "data.hdf5", rows)
    found = load_task("antmaze-umaze-v2", tmp_path / "data.hdf5").train
    assert found.size == 38
    transitions = found.take(np.arange(38))
    np.testing.assert_array_equal(transitions.reward, 0)
    np.testing.assert_array_equal(transitions.continues, 0)
    assert np.asarray(transitions.next_action_known).sum() == 36


@pytest.mark.parametrize("maze", MAPS)
def test_the_guide_leads_from_every_cell_to_the_goal_on_a_shortest_path(maze):
    generator = np.random.default_rng(0)
    goal = cell_centre(GOAL_CELLS[maze]) + np.asarray([1.4, 0.2])
    guide = Guide(MAPS[maze], goal)
    cells = free_cells(MAPS[maze])
    for start in cells:
        cell, steps = start, 0
        while True:
            target = guide.target(cell_centre(cell), generator)
            if np.array_equal(target, goal):
                break
            following = guide.nearest_cell(target)
            assert following in neighbours(cell)
            assert ((target - cell_centre(following) >= 0) & (target - cell_centre(following) <= 1)).all()
            cell, steps = following, steps + 1
        assert steps == max(0, guide.steps_left[start] - 1)  # from the neighbour of the goal it heads for the goal
        others = [guide.steps_left[each] for each in neighbours(start) if each in cells]
        assert guide.steps_left[start] == 0 or guide.steps_left[start] == min(others) + 1


def test_the_way_through_the_u_maze_is_six_cells_long():
    assert Guide(MAPS["umaze"], cell_centre((3, 1))).steps_left[1, 1] == 6


@pytest.mark.parametrize(
    ("name", "file", "episodes", "message"),
    [
        (
            "pen-human-v1",
            "data.hdf5",
            1,
            "cannot collect 'pen-human-v1'; the D4RL datasets that can be collected are: antmaze-",
        ),
        ("walker2d-expert-v2", "data.hdf5", 1, "cannot collect 'walker2d-expert-v2'"),
        ("pen-expert-v1", "data.hdf5", 0, "episodes is 0; it must be at least 1"),
        ("pen-expert-v1", "data.npz", 1, "the file to write is "),
    ],
)
def test_what_cannot_be_collected_is_refused(tmp_path, pen, name, file, episodes, message):
    with pytest.raises(InputError) as caught:
        collect(name, tmp_path / file, [pen], episodes)
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused_before_anything_is_collected(tmp_path, pen):
    (tmp_path / "mine.hdf5").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.hdf5 exists already"):
        collect("pen-expert-v1", tmp_path / "mine.hdf5", [pen], 10**6)
    assert (tmp_path / "mine.hdf5").read_text() == "mine"


def test_experts_that_do_not_fit_are_refused(tmp_path, pen):
    path = tmp_path / "data.hdf5"
    with pytest.raises(InputError, match="is not a folder with policy"):
        collect("pen-expert-v1", path, [tmp_path / "absent"], 1)
    with pytest.raises(
        InputError, match="0 experts were given; pen-expert-v1 is collected with one policy of a trained"
    ):
        collect("pen-expert-v1", path, [], 1)
    with pytest.raises(InputError, match="needs input ogbench-direction, 29 and 8"):
        collect("antmaze-umaze-v2", path, [pen], 1)
    with pytest.raises(
        InputError, match="takes 45 numbers and answers with 24; door-expert-v1 needs input observation"
    ):
        collect("door-expert-v1", path, [pen], 1)
    assert list(tmp_path.iterdir()) == []


def test_an_experts_file_has_the_returns_of_an_expert(tmp_path):
    door = expert_of_weights(expert_weights("dapg_door"), activation="tanh", output="none", input="observation")
    save_expert(door, tmp_path / "door")
    assert collect("door-expert-v1", tmp_path / "door.hdf5", [tmp_path / "door"], 2) == {
        tmp_path / "door.hdf5": 2 * 199
    }
    task = load_task("door-expert-v1", tmp_path / "door.hdf5")
    assert task.train.size == 2 * 199  # the row with the timeout is not a transition
    assert float(np.asarray(task.train.reward).sum()) / 2 > 2000
