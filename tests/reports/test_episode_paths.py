import base64
import io

import numpy as np
import pytest
from PIL import Image
from toys import saved_run, tiny_config, tiny_task

from drol.errors import InputError
from drol.reports import episode_paths
from drol.reports.episode_paths import film_of, film_player, maze_frames, maze_picture, to_picture
from drol.reports.selected_runs import Found, Shown
from drol.runs.records import EvaluationRow
from drol.runs.run import Run
from drol.tasks.base import Episode, Maze

MAZE = Maze(np.asarray([[1, 0, 0], [0, 0, 0]], bool), 4.0, (4.0, 4.0), (0.0, 0.0), (4.0, 0.0), 1.0)


@pytest.fixture
def run(tmp_path):
    config = tiny_config(seeds=(0,), steps=6)
    return Run(saved_run(tmp_path / "run", config, ()), config, tiny_task(maze=MAZE))


def animation(path, count, size=(40, 20)):
    """A film whose pictures get lighter."""
    path.parent.mkdir(exist_ok=True)
    pictures = [Image.new("RGB", size, (5 * number, 5 * number, 5 * number)) for number in range(count)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=50)


def test_the_maze_is_drawn_from_its_upper_left_corner():
    picture = maze_picture(MAZE)
    assert (picture["width"], picture["height"]) == (300, 200)
    assert picture["walls"] == [[0, 100]]  # row 0 is the lowest
    assert picture["goal"] == [250, 50, 25]
    assert to_picture(MAZE, np.asarray([[-4.0, -4.0], [0.0, np.nan]])).tolist()[0] == [50, 150]


def test_paths_of_each_evaluation_are_thinned_and_say_who_arrived(run):
    played = tuple(Episode(seed, 0.0, 999, seed % 2 == 0) for seed in range(60))
    for step in (0, 6):
        run.directory.log_evaluation(EvaluationRow(step, 0, 50.0, played))
        run.directory.save_trajectories(step, 0, [np.linspace([0, 0], [4, 0], 1000) for _ in played])
    frames = maze_frames(run, MAZE, Found())
    assert [frame["step"] for frame in frames] == [0, 6]
    assert len(frames[0]["arrived"]) == len(frames[0]["paths"]) == episode_paths.PATHS
    assert (frames[0]["successes"], frames[0]["episodes"]) == (30, 60)
    path = frames[0]["paths"][0]
    assert len(path) == 2 * episode_paths.POINTS
    assert (path[:2], path[-2:]) == ([150, 50], [250, 50])


def test_a_film_is_one_image_with_pictures_in_order(tmp_path):
    animation(tmp_path / "a.gif", 50)
    film = film_of(tmp_path / "a.gif")
    assert (film["count"], film["width"], film["height"]) == (episode_paths.PICTURES, 200, 100)
    with Image.open(io.BytesIO(base64.b64decode(film["image"].partition(",")[2]))) as sheet:
        shades = [
            sheet.getpixel((200 * (index % 8) + 100, 100 * (index // 8) + 50))[0] for index in range(film["count"])
        ]
    assert shades[0] < 10
    assert shades[-1] > 230
    assert shades == sorted(shades)


def test_films_are_of_the_newest_step_and_stop_where_the_page_would_be_too_large(run, monkeypatch):
    for step, seed, episode in ((0, 0, 0), (6, 0, 0), (6, 0, 1)):
        animation(run.directory.video(step, seed, episode), 3)
    (run.directory.videos / "holiday.gif").write_bytes(b"GIF89a")
    player = film_player([Shown(run, "drol")], ["drol"], Found())
    assert [film["label"] for film in player["runs"]] == [
        f"drol, 6 updates, seed 0, episode {number}" for number in (0, 1)
    ]
    monkeypatch.setattr(episode_paths, "FILM_BYTES", len(player["runs"][0]["image"]) + 10)
    found = Found()
    assert len(film_player([Shown(run, "drol")], ["drol"], found)["runs"]) == 1
    assert "episode1.gif is omitted: the page would be too large" in found.missing[0]


def test_a_video_that_is_none_is_named(run):
    path = run.directory.video(6, 0, 0)
    path.parent.mkdir()
    path.write_bytes(b"GIF89a nonsense")
    with pytest.raises(InputError, match=r"the video .* cannot be read"):
        film_of(path)
    found = Found()
    assert film_player([Shown(run, "drol")], ["drol"], found) is None
    assert str(path) in found.damage[0]
