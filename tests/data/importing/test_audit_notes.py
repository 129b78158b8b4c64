import numpy as np
import pytest
from toys import random_rows

from drol.data.import_options import Counts
from drol.data.importing.audit_notes import find_notes
from drol.data.importing.column_statistics import Statistics
from drol.data.moments import observation_moments
from drol.data.standardisation import Standardisation


def noted(rows, counts=None, nothing_held_out=False):
    statistics = Statistics()
    statistics.add(rows)
    return "; ".join(find_notes(statistics, counts or Counts(), None, nothing_held_out))


def test_what_looks_wrong_is_noted():
    rows = random_rows((100, 100, 100))
    assert "observation" not in noted(rows)
    strange = {name: array.copy() for name, array in rows.items()}
    strange["observation"][:, 1] = 3
    strange["observation"][:, 2] *= 1000
    strange["action"][:150, 0] = 1
    strange["action"][:, 1] *= 0.1
    strange["reward"][:] = -1
    strange["continues"][:] = 0
    text = noted(strange, Counts(dropped=2, gaps=3, too_short=4), nothing_held_out=True)
    for words in (
        "left out because a value was not finite: 2 steps",
        "at 3 steps the next observation is not",
        "a single step without a next observation: 4 episodes",
        "observation dimension 1 never changes",
        "observation dimension 2 is large; train with --standardise-observations",
        "action dimension 0 is often at the limit of the box (dimension 0 in 50%",
        "action dimension 1 stays within a fifth of the box",
        "every reward is -1",
        "all 3 true ends come after exactly 100 transitions: is it a time limit?",
        "no episode is held out",
    ):
        assert words in text, words
    strange["continues"][:] = 1
    assert "no episode truly ends" in noted(strange)
    assert "fewer transitions than a batch (1)" in noted(random_rows((1,)))


@pytest.mark.parametrize("size", [1e3, 1e30])
def test_large_observations_can_be_standardised_as_is_advised(size):
    rows = random_rows((100, 100))
    rows["observation"] *= np.float32(size)
    assert "observation dimensions 0, 1, 2 are large; train with --standardise-observations" in noted(rows)
    standardised = Standardisation.from_moments(*observation_moments(rows["observation"]))(rows["observation"])
    np.testing.assert_allclose(np.asarray(standardised).std(0), 1, rtol=1e-5)


def test_nothing_is_advised_that_would_be_refused_or_do_nothing():
    rows = random_rows((100, 100))
    rows["observation"][:, 0] = -3e38
    rows["observation"][-1, 0] = 3e38
    rows["observation"][:, 1] *= 1e-9
    rows["observation"][:, 2] *= 1e3
    text = noted(rows)
    assert "observation dimension 0 reaches too far for --standardise-observations" in text
    assert "observation dimension 1 changes by less than 1e-06, which --standardise-observations takes for" in text
    assert "observation dimension 2 is large; give such numbers in another unit" in text
    assert "train with" not in text
