import base64

import jax
import numpy as np
import pytest
from toys import random_rows, saved_run, tiny_config, tiny_task

from drol.data.dataset import Dataset
from drol.reports.drawn_actions import DRAWS, GRID, actions_near, actions_player, ends_of, packed, plane_of
from drol.reports.selected_runs import Found, Shown
from drol.runs.records import MetricsRow
from drol.runs.run import Run

DIAGNOSTICS = ("routed_bc_loss", "candidate_distance", "candidate_divergence")


def unpacked(text, ends, *shape):
    left, right, bottom, top = ends
    share = (np.frombuffer(base64.b64decode(text), "<i2").astype(float).reshape(*shape, 2) + 32767) / 65534
    return np.asarray([left, bottom]) + share * np.asarray([right - left, top - bottom])


@pytest.fixture
def run(tmp_path):
    config = tiny_config(seeds=(0,), steps=6)
    made = Run(saved_run(tmp_path / "run", config, (0, 6)), config, tiny_task())
    made.directory.log_metrics(MetricsRow(4, 0, {f"diagnostics/{name}": 0.5 for name in DIAGNOSTICS}))
    return made


def test_what_is_drawn_is_what_the_policy_draws_and_owners_are_the_nearest(run):
    player = actions_player([Shown(run, "drol")], ["drol"], Found())
    (entry,) = player["runs"]
    count, states = player["near"], len(player["states"])
    assert entry["steps"] == [0, 6]
    assert entry["cells"]
    drawn = unpacked(entry["draws"], player["ends"], 2, states, DRAWS)
    observed = np.asarray(run.task.train.take(np.linspace(0, 199, states).round().astype(int)).observation)
    keys = jax.random.split(jax.random.key(0), DRAWS)
    policy = run.policy(6, 0)
    np.testing.assert_allclose(
        drawn[1, 2], np.asarray(policy.draw_each(np.tile(observed[2], (DRAWS, 1)), keys)), atol=1e-4
    )
    data = unpacked(player["data"], player["ends"], states, count)
    owners = np.frombuffer(base64.b64decode(entry["owners"]), np.uint8).reshape(2, states, count)
    nearest = np.square(data[2][:, None] - drawn[1, 2]).sum(-1).argmin(-1)
    assert np.mean(nearest == owners[1, 2]) > 0.98  # but for ties within what 16 bits can tell
    values = np.frombuffer(base64.b64decode(entry["values"]), np.uint8).reshape(2, states, GRID, GRID)
    critic = policy.networks.critic
    low = critic(np.tile(observed[2], (2, 1)), np.asarray([[-1.0, -1.0], [1.0, -1.0]], np.float32)).mean(0)
    assert (values[1, 2, 0, 0] < values[1, 2, 0, -1]) == bool(
        low[0] < low[1]
    )  # rows from the bottom, columns from the left


def test_actions_of_other_sizes_are_projected_and_the_page_says_so(tmp_path):
    generator = np.random.default_rng(0)
    near = generator.normal(size=(500, 5)) * np.asarray([0.01, 2.0, 0.01, 1.0, 0.01])
    plane = plane_of(near)
    assert "Actions have 5 dimensions and are projected onto the two directions" in plane.words
    assert "(100% of their variance)" in plane.words
    np.testing.assert_allclose(np.abs(plane.axes), np.eye(5)[[1, 3]], atol=0.06)
    np.testing.assert_allclose(plane.see(near).mean(0), 0, atol=1e-9)
    assert not plane_of(near[:, :2]).words
    line = plane_of(near[:, :1])
    assert "one dimension" in line.words
    np.testing.assert_array_equal(line.see(np.asarray([[0.5]])), [[0.5, 0.0]])


def test_data_near_a_state_is_what_was_done_in_the_nearest_states():
    rows = random_rows([40, 60])
    rows["observation"] = np.repeat(np.arange(102.0)[:, None], 3, 1).astype(np.float32)
    rows["action"] = np.linspace(-0.9, 0.9, 204).reshape(102, 2).astype(np.float32)
    task = tiny_task(train=Dataset.from_rows(**rows))
    (near,) = actions_near(task, np.full((1, 3), 101.0, np.float32))
    transitions = np.flatnonzero(~rows["last"])[-len(near) :]
    np.testing.assert_allclose(np.sort(near[:, 0]), np.sort(rows["action"][transitions, 0]), atol=1e-6)


def test_points_are_kept_to_16_bits():
    seen = np.random.default_rng(1).normal(size=(7, 3, 2))
    ends = ends_of(seen.reshape(-1, 2))
    np.testing.assert_allclose(unpacked(packed(seen, ends), ends, 7, 3), seen, atol=1e-3)


def test_a_policy_that_cannot_be_read_is_left_out_and_named(run):
    (run.directory.policies / "000000000" / "arrays.safetensors").write_bytes(b"")
    found = Found()
    player = actions_player([Shown(run, "drol")], ["drol"], found)
    assert player["runs"][0]["steps"] == [6]
    assert "000000000 cannot be used" in found.damage[0]
