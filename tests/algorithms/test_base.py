import pytest

from drol.algorithms.drol import DROL
from drol.algorithms.ifql import IFQL
from drol.algorithms.iql import IQL
from drol.algorithms.sorl import SORL
from drol.errors import InputError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_candidates": 0}, "num_candidates is 0; it must be from 1 to 65,536"),
        ({"num_candidates": 2.5}, "num_candidates is 2.5; it must be a whole number"),
        ({"num_candidates": True}, "num_candidates is True; it must be a whole number"),
        ({"bc_weight": -1.0}, "bc_weight is -1.0; it must be at least 0"),
        ({"bc_weight": "1"}, "bc_weight is '1'; it must be a number"),
        ({"bc_weight": float("inf")}, "bc_weight is inf; it must be at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be from 1e-12 to 1"),
        ({"discount": 1.5}, "discount is 1.5; it must be from 0 to 1"),
        ({"q_aggregation": "max"}, "q_aggregation is 'max'; it must be one of mean, min"),
        ({"normalise_q": 1}, "normalise_q is 1; it must be true or false"),
        ({"hidden_sizes": ()}, "hidden_sizes is (); it must be one or more whole numbers"),
        ({"hidden_sizes": (2.5,)}, "hidden_sizes is (2.5,); it must be one or more whole numbers"),
        ({"hidden_sizes": (16, True)}, "hidden_sizes is (16, True); it must be one or more whole numbers"),
        ({"critic_hidden_sizes": (16, 0)}, "critic_hidden_sizes is (16, 0); it must be from 1 to 65,536"),
        ({"hidden_sizes": (16, 0)}, "hidden_sizes is (16, 0); it must be from 1 to 65,536"),
    ],
)
def test_a_bad_hyperparameter_is_named_with_what_is_allowed(values, message):
    with pytest.raises(InputError) as caught:
        DROL(**values)
    assert str(caught.value) == message


def test_an_unknown_hyperparameter_is_answered_with_the_nearest():
    with pytest.raises(InputError) as caught:
        DROL.from_dict({"num_candidate": 4})
    assert str(caught.value) == "unknown hyperparameter of DROL 'num_candidate'; did you mean num_candidates?"


def test_a_whole_number_for_a_float_is_that_float():
    assert type(DROL(bc_weight=3).bc_weight) is float


def test_the_number_of_draws_is_the_algorithms_own_unless_it_is_given():
    assert DROL().check_best_of(None) == 1
    assert DROL().check_best_of(7) == 7
    assert IFQL(num_samples=5).check_best_of(None) == 5
    assert IFQL(num_samples=5).check_best_of(1) == 1
    assert IQL().check_best_of(1) == IQL().check_best_of(None) == 1


def test_an_evaluation_may_change_only_what_acting_alone_depends_on():
    assert SORL(q_weight=3.0).acting_with({"act_steps": 2}).to_dict() == SORL(q_weight=3.0, act_steps=2).to_dict()
    with pytest.raises(InputError) as caught:
        SORL().acting_with({"q_weight": 3.0})
    assert (
        str(caught.value) == "q_weight is given; of the hyperparameters of SORL evaluations may change only act_steps"
    )
    with pytest.raises(InputError, match="evaluations may change nothing"):
        DROL().acting_with({"act_steps": 2})
    with pytest.raises(InputError, match="act_steps is 3; it must be one of"):
        SORL().acting_with({"act_steps": 3})


def test_a_removed_hyperparameter_is_read_if_it_has_the_value_that_the_class_still_has():
    assert DROL.from_dict({"bc_weight": 3.0, "target_candidates": 1, "densest": 0}).to_dict() == DROL(3.0).to_dict()
    with pytest.raises(InputError, match="unknown hyperparameter of DROL 'target_candidates'"):
        DROL.from_dict({"target_candidates": 8})


@pytest.mark.parametrize(
    ("algorithm", "best_of", "message"),
    [
        (DROL(), 0, "best_of is 0; it must be a whole number, at least 1"),
        (DROL(), 2.5, "best_of is 2.5; it must be a whole number, at least 1"),
        (DROL(), True, "best_of is True; it must be a whole number, at least 1"),
        (IQL(), 4, "best_of is 4, but IQL has one action for each observation; it must be 1"),
    ],
)
def test_a_bad_number_of_draws_is_refused(algorithm, best_of, message):
    with pytest.raises(InputError) as caught:
        algorithm.check_best_of(best_of)
    assert str(caught.value) == message
