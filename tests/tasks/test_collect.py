import numpy as np
import pytest

from drol.errors import InputError
from drol.tasks.collect import COLLECTABLE, collect, free_cells, is_hallway, walk
from drol.tasks.environments import make_ogbench
from drol.tasks.ogbench import EMBEDDED

NAME = "pointmaze-medium-navigate-v0"


@pytest.fixture(scope="module")
def environment():
    environment = make_ogbench("pointmaze-medium-v0")
    yield environment
    environment.close()


@pytest.fixture(scope="module")
def embedded():
    """The shipped files, training and validation."""
    parts = []
    for name in (NAME, f"{NAME}-val"):
        with np.load(EMBEDDED / f"{name}.npz") as file:
            parts.append({each: file[each] for each in file})
    return parts


def assert_equal_rows(trajectory, stored, number):
    assert trajectory.keys() == stored.keys()
    rows = slice(1001 * number, 1001 * (number + 1))
    for name, array in trajectory.items():
        assert array.dtype == stored[name].dtype, name
        np.testing.assert_array_equal(array, stored[name][rows], err_msg=name)


def test_the_shipped_trajectories_are_those_that_the_command_collects(environment, embedded):
    train, validation = embedded
    assert len(train["observations"]) == 100 * 1001
    assert len(validation["observations"]) == 10 * 1001
    # In this order: a trajectory depends on its number alone, not on those collected before it.
    for number in (1, 0, 99):
        assert_equal_rows(walk(environment, np.random.SeedSequence((0, number))), train, number)
    assert_equal_rows(walk(environment, np.random.SeedSequence((0, 100))), validation, 0)


def test_another_seed_is_another_trajectory(environment, embedded):
    other = walk(environment, np.random.SeedSequence((1, 0)))
    assert not np.array_equal(other["observations"], embedded[0]["observations"][:1001])


def test_collecting_writes_both_files_and_reports_each_trajectory(tmp_path, embedded):
    path = tmp_path / "deeper" / "mine.npz"
    reported = []
    written = collect(NAME, path, 1, 0, lambda done, total: reported.append((done, total)))
    assert written == (path, path.with_name("mine-val.npz"))
    assert reported == [(1, 2), (2, 2)]
    assert sorted(each.name for each in path.parent.iterdir()) == ["mine-val.npz", "mine.npz"]
    for number, each in enumerate(written):
        with np.load(each) as file:
            assert_equal_rows({name: file[name] for name in file}, embedded[0], number)


@pytest.mark.parametrize("existing", ["mine.npz", "mine-val.npz"])
def test_an_existing_file_is_refused_and_left_alone(tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    with pytest.raises(InputError) as caught:
        collect(NAME, tmp_path / "mine.npz", 1, 0)
    assert str(caught.value) == f"{tmp_path / existing} exists already; choose another --out, nothing was written"
    assert [each.name for each in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "episodes", "message"),
    [
        ("antmaze-medium-navigate-v0", 1, "cannot collect 'antmaze-medium-navigate-v0'; it must be one of"),
        ("pointmaze-medium-stitch-v0", 1, "cannot collect 'pointmaze-medium-stitch-v0'; it must be one of"),
        (NAME, 0, "episodes is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_collected_is_refused_before_anything_is_written(tmp_path, name, episodes, message):
    with pytest.raises(InputError) as caught:
        collect(name, tmp_path / "mine.npz", episodes, 0)
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_collected(tmp_path):
    (tmp_path / "file").write_text("")
    reported = []
    with pytest.raises((InputError, OSError)):
        collect(NAME, tmp_path / "file" / "mine.npz", 1, 0, lambda *progress: reported.append(progress))
    assert reported == []


def test_every_collectable_name_is_a_task_of_ogbench():
    from drol.tasks.ogbench import task_names

    assert all(name.replace("-v0", "-singletask-v0") in task_names() for name in COLLECTABLE)


def test_hallways_connect_two_opposite_neighbours_only():
    maze = np.asarray(
        [
            [1, 1, 1, 1, 1],
            [1, 0, 0, 0, 1],
            [1, 0, 1, 0, 1],
            [1, 0, 1, 1, 1],
            [1, 1, 1, 1, 1],
        ]
    )
    assert free_cells(maze) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 3), (3, 1)]
    # (1, 1) and (1, 3) are corners, (2, 3) and (3, 1) dead ends.
    assert [cell for cell in free_cells(maze) if is_hallway(maze, *cell)] == [(1, 2), (2, 1)]
