import numpy as np
import pytest
from step_files import refusal

from drol.data.clock import Clock, describe_sampling, is_uneven, scale_of, to_time, unit_of

NONE = np.zeros(6, bool)


def look(times, ends=NONE, name="time", **options):
    clock = Clock(name, **options)
    cut, fault = clock.find_faults(np.asarray(times, float), ends, first=100)
    return clock, cut, fault


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([0, 1, 2, 1.5, 3, 4, 5], "time runs backwards within an episode, at step 103 (from 2 to 1.5); sort the rows"),
        ([0, 1, 1, 2, 2, 3, 4], "time repeats within an episode, at steps 102, 104 (from 1 to 1)"),
        ([0, 1, 2, 9, 10, 11, 30], "time has a gap within an episode, at steps 103, 106: 7 s where 1 is usual"),
        ([0, 1, np.nan, 3, 4, 5, 6], "time has no time in step 102"),
        ([0, 2e7, 4e7, 6e7, 8e7, 8e7 + 0.02, 1e8], "time has an interval of 0.02 s at step 105 where 2e+07 is usual"),
    ],
)
def test_time_that_does_not_go_on_is_named_with_its_rows(times, words):
    assert look(times)[2].startswith(words)


def test_time_may_start_again_with_every_episode():
    ends = np.array([False, False, True, False, False, False])
    assert look([0, 1, 2, 0, 1, 2, 3], ends)[2] is None
    assert look([50, 51, 52, 0, 1, 2, 3], ends)[2] is None


def test_gaps_split_episodes_if_that_is_asked_for():
    clock, cut, fault = look([0, 1, 2, 9, 10, 11, 30], split_at=5)
    assert fault is None
    np.testing.assert_array_equal(cut, [False, False, True, False, False, True])
    assert clock.splits == 2
    assert clock.summary() == {"column": "time", "unit": "s", "interval": 1.0, "low": 1.0, "high": 1.0}
    assert look([0, 1, 2, 9, 10, 11, 30], split_at=50)[1].sum() == 0


def test_a_counter_must_not_leave_a_step_out():
    assert (
        "has a gap within an episode, at step 104: 2 steps where 1 is usual"
        in look([0, 1, 2, 3, 5, 6, 7], name="frame_index")[2]
    )
    assert look([0, 4, 8, 12, 16, 20, 24], name="step")[2] is None


def test_the_rate_and_its_spread_are_measured():
    even = look(np.arange(7) / 50)[0].summary()
    assert "50 Hz" in describe_sampling(even)
    assert not is_uneven(even)
    uneven = look([0, 1, 3, 4, 6, 7, 9])[0].summary()
    assert is_uneven(uneven)
    assert "take 1 to 2 s" in describe_sampling(uneven)
    assert describe_sampling(look(np.arange(7), name="step")[0].summary()) == "step counts by 1"


def test_units_come_from_names():
    assert [unit_of(name) for name in ("time", "t", "frame_index", "step", "episode_step", "timestamp")] == [
        "s", "s", "steps", "steps", "steps", "s",
    ]  # fmt: skip
    assert [scale_of(name) for name in ("time_ns", "stamp_ms", "time", "items")] == [1e-9, 1e-3, 1, 1]


def test_dates_become_seconds():
    texts = np.array(["2026-01-31T23:59:59.5", "2026-02-01T00:00:00.25"])
    for array in (texts, texts.astype("datetime64[ms]")):
        assert np.diff(to_time("time", array))[0] == pytest.approx(0.75, abs=1e-6)
    np.testing.assert_allclose(to_time("stamp_ns", np.array([5, 10**9])), [5e-9, 1])
    assert "which is no time; it must be numbers or dates" in refusal(to_time, "time", np.array(["noon"]))
    assert "time is bool" in refusal(to_time, "time", np.array([True]))
