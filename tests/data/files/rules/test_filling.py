import numpy as np
import pytest
from step_files import refusal

from drol.data.files.episodes import Assembler
from drol.data.files.options import ReadingOptions

NAN = np.nan
STEPS = {
    "observation": np.array([[1.0, NAN], [NAN, 2.0], [3.0, NAN], [4.0, NAN], [NAN, 6.0], [7.0, NAN]]),
    "action": np.array([0.1, NAN, 0.3, 0.4, NAN, 0.6])[:, None],
    "reward": np.arange(6.0),
    "episode": np.array(["a", "a", "a", "b", "b", "b"]),
}


def rows_of(steps, pieces, **options):
    assembler = Assembler({name: name for name in steps}, ReadingOptions(ends="timeout", **options))
    parts = [
        assembler.add({name: array[part] for name, array in steps.items()})
        for part in np.array_split(np.arange(6), pieces)
    ]
    parts = [part for part in (*parts, assembler.end_file(), assembler.finish()) if part]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, assembler.counts


@pytest.mark.parametrize("pieces", [1, 2, 3, 6])
def test_missing_values_are_those_before_them_in_the_episode(pieces):
    steps = STEPS | {"observation": np.nan_to_num(STEPS["observation"], nan=5.0)}
    steps["observation"][1, 0] = steps["observation"][4, 1] = NAN
    rows, counts = rows_of(steps, pieces, fill="previous")
    np.testing.assert_array_equal(rows["observation"], [[1, 5], [1, 2], [3, 5], [4, 5], [5, 5], [7, 5]])
    np.testing.assert_allclose(rows["action"][~rows["last"]][:, 0], [0.1, 0.1, 0.4, 0.4])
    assert counts.filled == {"observation": 2, "action": 2}


@pytest.mark.parametrize("pieces", [1, 2, 6])
def test_what_begins_an_episode_is_not_filled_from_the_one_before(pieces):
    assert "observation has values that are NaN" in refusal(rows_of, STEPS, pieces, fill="previous")
    rows, counts = rows_of(STEPS, pieces, fill="previous", drop_nonfinite=True)
    np.testing.assert_array_equal(rows["observation"], [[1, 2], [3, 2], [4, 6], [7, 6]])
    assert counts.dropped == 2


def test_steps_with_next_observations_are_not_filled():
    names = ("observation", "action", "reward", "episode", "next_observation")
    message = refusal(Assembler, {name: name for name in names}, ReadingOptions("timeout", fill="previous"))
    assert message.startswith("--fill is for steps without next observations")
