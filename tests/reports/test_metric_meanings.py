import pytest

from drol.algorithms import known_algorithms
from drol.reports.metric_meanings import MEANINGS, OWN, meaning_of
from drol.sweeps.objective import logged_names


@pytest.mark.parametrize("method", known_algorithms())
def test_every_number_that_a_method_logs_is_explained(method):
    for name in logged_names(method):
        assert OWN not in meaning_of(name), name


def test_no_number_is_explained_that_nobody_logs():
    logged = {name for method in known_algorithms() for name in logged_names(method)}
    assert set(MEANINGS) <= logged


def test_what_a_method_of_yours_logs_is_shown_too():
    assert meaning_of("my_loss") == OWN
    assert meaning_of("validation/winner_entropy").endswith("0 if one wins always; on validation data")
