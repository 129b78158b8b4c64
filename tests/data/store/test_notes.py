from toys import random_rows

from drol.data.files.options import Counts
from drol.data.store.notes import find_notes
from drol.data.store.statistics import Statistics


def noted(rows, counts=None, nothing_held_out=False):
    statistics = Statistics()
    statistics.add(rows)
    return "; ".join(find_notes(statistics, counts or Counts(), nothing_held_out))


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
        "2 steps were not finite",
        "at 3 steps the next observation is not",
        "4 episodes of a single step",
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
    assert "1 transitions are fewer than a batch" in noted(random_rows((1,)))
