import numpy as np
import pytest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.errors import InputError
from drol_reproduction.figures import voronoi
from drol_reproduction.figures.voronoi import (
    Q_STEP,
    Scene,
    find_regimes,
    follow,
    make_scene,
    plane_of,
    route,
    voronoi_figure,
    write_animation,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(voronoi, "SEARCHED", 64)
    monkeypatch.setattr(voronoi, "PIXELS", 12)


@pytest.fixture
def run(tmp_path):
    saved_run(tmp_path / "run", tiny_config(), (0, 4, 8, 12))
    return drol.open_run(tmp_path / "run", task=tiny_task())


def test_each_regime_is_what_its_name_says(run, monkeypatch, tmp_path):
    found = {}

    def route_saved(run, step, seed, followed):
        """As it is, but a winner loses its action at the second checkpoint and never afterwards."""
        values = original(run, step, seed, followed)
        return found.setdefault(step, values | {"handoff": np.full(64, step == 8)})

    original = voronoi.route_saved
    monkeypatch.setattr(voronoi, "route_saved", route_saved)
    search = find_regimes(run)
    assert [(scene.regime, scene.step) for scene in search.scenes] == [("spread", 4), ("handoff", 8), ("stable", 12)]
    assert search.handoff_share == {4: 0, 8: 1, 12: 0}
    assert len(voronoi_figure(search).axes) == 3
    write_animation(run, search, tmp_path / "cells.gif")
    assert (tmp_path / "cells.gif").read_bytes()[:3] == b"GIF"


def test_routing_agrees_with_numpy(run):
    followed = follow(run, 64)
    routed = route(run.policy(12, 0), followed.observation, followed.action, followed.latent)
    candidates, action = np.asarray(routed.candidates), np.asarray(followed.action)
    distance, index = np.square(candidates - action[:, None]).sum(-1), np.arange(len(action))
    assert np.asarray(routed.winner).tolist() == distance.argmin(1).tolist()
    winners, moved = candidates[index, distance.argmin(1)], np.asarray(routed.moved)
    inside = (np.abs(moved) < 1).all(1)
    lengths = np.linalg.norm(moved - winners, axis=1)
    np.testing.assert_allclose(lengths[inside], Q_STEP * action.shape[1] ** 0.5, rtol=1e-4)
    distance[index, distance.argmin(1)] = np.square(moved - action).sum(1)
    assert np.asarray(routed.winner_after).tolist() == distance.argmin(1).tolist()


def test_a_scene_agrees_with_numpy(run):
    followed = follow(run, 64)
    scene = make_scene(run, "stable", 12, 0, followed, 5)
    distances = np.square(scene.candidates - scene.action).sum(-1)
    assert scene.winner == distances.argmin()
    distances[scene.winner] = np.square(scene.moved - scene.action).sum()
    assert scene.winner_after == distances.argmin()


def test_the_plane_of_more_than_two_dimensions_shows_the_winners_step_in_full():
    generator = np.random.default_rng(0)
    candidates = generator.uniform(-0.5, 0.5, (6, 4))
    moved = candidates[2] + 0.1 * np.asarray([0.0, 0.6, 0.8, 0.0])
    scene = Scene("handoff", 4, np.zeros(3), np.zeros(4), candidates, 2, moved, 1, None)  # type: ignore[arg-type]
    plane = plane_of(scene)
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-9)
    step = plane.seen(moved) - plane.seen(candidates[2])
    assert np.linalg.norm(step) == pytest.approx(0.1)
    assert (np.abs(plane.seen(candidates)) <= plane.half).all()
    grid, points = plane.points()
    np.testing.assert_allclose(plane.seen(points.reshape(-1, 4))[0], [grid[0], grid[0]], atol=1e-9)


def test_two_dimensions_are_shown_as_they_are():
    scene = Scene("stable", 4, np.zeros(3), np.zeros(2), np.zeros((3, 2)), 0, np.ones(2), 0, None)  # type: ignore[arg-type]
    assert plane_of(scene).seen(np.asarray([0.3, -0.7])).tolist() == [0.3, -0.7]


def test_too_few_policies_or_candidates_are_refused(tmp_path):
    saved_run(tmp_path / "few", tiny_config(), (0, 12))
    with pytest.raises(InputError, match="has 1 policies after step 0 and figure 2 needs three; train"):
        find_regimes(drol.open_run(tmp_path / "few", task=tiny_task()))
    algorithm = drol.DROL(num_candidates=2, hidden_sizes=(8,))
    saved_run(tmp_path / "two", tiny_config(algorithm=algorithm), (0, 4, 8, 12))
    with pytest.raises(InputError, match="has K = 2; figure 2 needs 3 or more"):
        find_regimes(drol.open_run(tmp_path / "two", task=tiny_task()))
