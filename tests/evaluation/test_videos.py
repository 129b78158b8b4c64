"""Videos of episodes; the environment of the tests draws a pixel for each step."""

import functools

import numpy as np
import pytest
from drawn_environment import Drawn
from fake_environments import Walk
from PIL import Image
from toys import saved_run, tiny_config, tiny_task

from drol.errors import InputError
from drol.evaluation import videos
from drol.evaluation.evaluate_run import evaluate
from drol.runs.run import open_run


def a_run(folder, environment):
    saved_run(folder, tiny_config(), (6,))
    return open_run(folder, task=tiny_task(make_environment=environment))


def brightness(path):
    """The brightness of the first pixel of each frame."""
    with Image.open(path) as image:
        found = []
        for number in range(image.n_frames):
            image.seek(number)
            found.append(np.asarray(image.convert("RGB"))[0, 0, 0])
        return found


def test_the_first_episodes_of_each_seed_are_recorded_as_they_were_played(tmp_path):
    run = a_run(tmp_path / "run", Drawn)
    rows = evaluate(run, episodes=3, processes=2, videos=2)
    names = sorted(path.name for path in run.directory.videos.iterdir())
    assert names == [f"000000006-seed{seed}-episode{episode}.gif" for seed in (0, 7) for episode in (0, 1)]
    for row in rows:
        for episode in row.episodes[:2]:
            seen = brightness(run.directory.video(6, row.seed, episode.seed))
            np.testing.assert_allclose(seen, 20 * np.arange(episode.length + 1), atol=3)  # a picture for each step
    assert run.extra_evaluations == rows


def test_of_long_episodes_only_some_frames_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(videos, "MOST_FRAMES", 3)
    run = a_run(tmp_path / "run", Drawn)
    (row, _) = evaluate(run, episodes=1, processes=1, videos=1)
    seen = brightness(run.directory.video(6, 0, 0))
    assert row.episodes[0].length == 6
    np.testing.assert_allclose(seen, [0, 40, 80, 120], atol=3)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [(Walk, "AttributeError"), (functools.partial(Drawn, blind=True), "it gives no picture")],
)
def test_an_environment_that_cannot_be_drawn_is_refused_before_anything_is_played(tmp_path, environment, reason):
    run = a_run(tmp_path / "run", environment)
    with pytest.raises(InputError, match=rf"the environment of toy cannot be drawn \({reason}.*; leave --video out"):
        evaluate(run, episodes=1, processes=1, videos=1)
    assert run.extra_evaluations == []
