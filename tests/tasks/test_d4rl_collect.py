from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium_robotics")
pytest.importorskip("h5py")

from drol.data.hdf5 import read_hdf5
from drol.errors import InputError
from drol.tasks import d4rl_collect, load_task
from drol.tasks.d4rl_collect import AntWalker, Guide, HandExpert, collect, collect_antmaze, free_cells, neighbours
from drol.tasks.d4rl_environments import GOAL_CELLS, MAPS, cell_centre

pytestmark = pytest.mark.usefixtures("quick_compile")

EXPERTS = Path(__file__).parents[3] / "shared" / "data" / "experts"
NAMES = ("observations", "actions", "rewards", "terminals", "timeouts")


def layer(name, size_in, size_out, generator):
    return {
        f"{name}/kernel": generator.normal(0, 0.1, (size_in, size_out)).astype(np.float32),
        f"{name}/bias": np.zeros(size_out, np.float32),
    }


@pytest.fixture(scope="module")
def pen_weights(tmp_path_factory):
    """A policy for the pen that nobody trained; it drops the pen now and then."""
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("weights") / "pen.npz"
    weights = (
        layer("layers/0", 45, 8, generator) | layer("layers/1", 8, 8, generator) | layer("layers/2", 8, 24, generator)
    )
    scales = {"in_shift": np.zeros(45), "in_scale": np.ones(45), "out_shift": np.zeros(24), "out_scale": np.ones(24)}
    np.savez(path, **weights, **scales, log_std=np.full(24, -0.5))
    return path


@pytest.fixture(scope="module")
def ant_weights(tmp_path_factory):
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("weights") / "ant.npz"
    np.savez(
        path,
        **layer("layers/0", 29, 8, generator),
        **layer("layers/1", 8, 8, generator),
        **layer("mean", 8, 8, generator),
    )
    return path


def test_the_expert_is_its_equation(pen_weights):
    expert = HandExpert(pen_weights)
    weights = expert.weights
    observation = np.random.default_rng(1).normal(size=45)
    hidden = np.tanh(observation @ weights["layers/0/kernel"])
    hidden = np.tanh(hidden @ weights["layers/1/kernel"])
    mean = hidden @ weights["layers/2/kernel"]
    np.testing.assert_allclose(expert.act(observation), np.clip(mean, -1, 1), atol=1e-6)
    drawn = np.asarray([expert.act(observation, np.random.default_rng(seed)) for seed in range(200)])
    assert np.abs(drawn).max() <= 1
    middle = np.abs(mean) < 0.2  # where few draws are clipped
    np.testing.assert_allclose(np.median(drawn, 0)[middle], mean[middle], atol=0.25)


def test_collected_files_are_read_by_their_task(tmp_path, pen_weights):
    path = tmp_path / "pen.hdf5"
    reported = []
    collect("pen-expert-v1", path, pen_weights, 4, 0, lambda done, total: reported.append((done, total)))
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [each.name for each in tmp_path.iterdir()] == ["pen.hdf5"]
    rows = read_hdf5(path, NAMES)
    ends = rows["terminals"] | rows["timeouts"]
    assert ends.sum() == 4
    assert ends[-1]
    assert not (rows["terminals"] & rows["timeouts"]).any()
    assert rows["terminals"].any()  # the pen was dropped
    assert np.abs(rows["actions"]).max() <= 1
    task = load_task("pen-expert-v1", path)
    dropped = int(rows["timeouts"].sum()) + int(not rows["timeouts"][-1])  # rows that are no transition
    assert task.train.size == len(ends) - dropped
    found = task.train.take(np.arange(task.train.size))
    assert (np.asarray(found.continues) == 0).sum() == rows["terminals"][:-1].sum()


def test_the_same_seed_gives_the_same_rows(tmp_path, pen_weights):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        collect("pen-expert-v1", tmp_path / name, pen_weights, 1, seed)
    first, again, other = (read_hdf5(tmp_path / name, NAMES) for name in "abc")
    for name in NAMES:
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["observations"][0], other["observations"][0])


@pytest.mark.parametrize("name", ["antmaze-umaze-v2", "antmaze-large-diverse-v2", "antmaze-medium-play-v2"])
def test_walks_start_where_d4rl_starts_them(monkeypatch, ant_weights, name):
    monkeypatch.setattr(d4rl_collect, "WALK_ROWS", 20)
    rows = collect_antmaze(name, AntWalker(ant_weights), 6, 0)
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


def test_walks_are_rewarded_where_they_pass_the_goal_and_go_on(monkeypatch, ant_weights, tmp_path):
    monkeypatch.setattr(d4rl_collect, "WALK_ROWS", 20)
    monkeypatch.setitem(d4rl_collect.GOAL_CELLS, "umaze", (1, 1))
    monkeypatch.setattr(d4rl_collect, "GOAL_RADIUS", 12.0)  # reached from the start
    rows = collect_antmaze("antmaze-umaze-v2", AntWalker(ant_weights), 2, 0)
    assert rows["terminals"][:-1].all()
    d4rl_collect.write_hdf5(tmp_path / "data.hdf5", rows)
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
    ("name", "episodes", "message"),
    [
        ("pen-human-v1", 1, "cannot collect 'pen-human-v1'; it must be an antmaze or expert task of D4RL"),
        ("walker2d-expert-v2", 1, "cannot collect 'walker2d-expert-v2'"),
        ("pen-expert-v1", 0, "episodes is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_collected_is_refused(tmp_path, pen_weights, name, episodes, message):
    with pytest.raises(InputError) as caught:
        collect(name, tmp_path / "data.hdf5", pen_weights, episodes)
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_refused_before_anything_is_collected(tmp_path, pen_weights):
    (tmp_path / "mine.hdf5").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.hdf5 exists already"):
        collect("pen-expert-v1", tmp_path / "mine.hdf5", pen_weights, 10**6)
    assert (tmp_path / "mine.hdf5").read_text() == "mine"


def test_weights_that_are_not_there_are_named(tmp_path, pen_weights):
    with pytest.raises(InputError, match="does not exist"):
        collect("pen-expert-v1", tmp_path / "data.hdf5", tmp_path / "absent.npz", 1)
    with pytest.raises(InputError, match="lacks"):
        collect("antmaze-umaze-v2", tmp_path / "data.hdf5", pen_weights, 1)


@pytest.mark.skipif(not EXPERTS.is_dir(), reason="DAPG's policies are not distributed with this project")
def test_an_experts_file_has_the_returns_of_an_expert(tmp_path):
    path = collect("door-expert-v1", tmp_path / "door.hdf5", EXPERTS / "dapg_door.npz", 2)
    task = load_task("door-expert-v1", path)
    assert task.train.size == 2 * 199  # the row with the timeout is no transition
    assert float(np.asarray(task.train.reward).sum()) / 2 > 2000
