import numpy as np
from browser import visit

from drol.data.dataset import Dataset
from drol.data.dimensions import Dimensions
from drol.reports.dataset_episodes import find_outliers, robust_deviation, take_sample
from drol.reports.dataset_page import write_data_page
from drol.tasks.base import task_from


def make_task(images=False):
    """Return a task with forty episodes: one has a jump and another one is long."""
    generator = np.random.default_rng(0)
    observation, action, reward, episode = [], [], [], []
    for number in range(40):
        length = 200 if number == 7 else 30
        moves = generator.uniform(-0.5, 0.5, (length, 2))
        places = np.cumsum(0.1 * moves, 0) - 0.1 * moves
        if number == 23:
            places[15] += 40
        observation.append(np.column_stack((places, np.full(length, 3.0))))
        action.append(moves)
        reward.append(generator.normal(size=length))
        episode.append(np.full(length, number))
    seen = np.concatenate(observation)
    if images:
        seen = np.broadcast_to(np.arange(len(seen), dtype=np.uint8)[:, None, None, None], (len(seen), 8, 8, 3))
    data = Dataset.from_arrays(
        np.ascontiguousarray(seen), np.concatenate(action), np.concatenate(reward), episode=np.concatenate(episode),
        ends="timeout",
    )  # fmt: skip
    if images:
        return task_from(data, "camera")
    named = {
        "observation_dimensions": Dimensions(("x", "y", "still")),
        "action_dimensions": Dimensions(("right", "up")),
    }
    return task_from(data, "arm", **named)


def test_outliers_are_found_with_the_reason():
    outliers = find_outliers(take_sample(make_task()))
    found = {each.episode: each.why for each in outliers}
    assert len(outliers) <= 10
    assert [each.episode for each in outliers[:2]] in ([23, 7], [7, 23])
    assert "largest jump of an observation" in found[23] or "largest distance" in found[23]
    assert "at step 1" in found[23]
    assert "its length is 199, far above the median of 29" in found[7]
    assert [each.score for each in outliers] == sorted((each.score for each in outliers), reverse=True)


def test_equal_values_are_not_outliers():
    assert not robust_deviation(np.full(10, 3.0)).any()
    assert np.abs(robust_deviation(np.array([1.0, 1, 1, 1, 50]))).argmax() == 4


def test_the_page_has_every_part(tmp_path):
    notes = write_data_page(make_task(), tmp_path / "page.html")
    assert any("look like changes" in note for note in notes)
    with visit(f"file://{tmp_path / 'page.html'}", width=500) as seen:
        page = seen.page
        assert page.title() == "Data of arm"
        titles = page.locator("h2").all_inner_texts()
        assert titles == ["Episodes", "Marginals", "Coverage", "What actions move", "Returns", "Unusual episodes"]
        assert page.locator("svg").count() == 8
        assert seen.errors == []
        assert seen.requests == [f"file://{tmp_path / 'page.html'}"]  # it needs no other file
        assert page.evaluate("document.documentElement.scrollWidth") <= 500
        text = page.inner_text("body")
        assert "its length is 199" in text
    html = (tmp_path / "page.html").read_text()
    for name in ("right", "up", "still: always 3"):
        assert name in html


def test_images_are_shown_as_frames(tmp_path):
    assert write_data_page(make_task(images=True), tmp_path / "page.html") != []
    html = (tmp_path / "page.html").read_text()
    assert "step 0" in html
    assert "What actions move" not in html
