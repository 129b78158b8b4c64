import pytest
from made_results import made_result

from drol.errors import InputError
from drol.experiments.results.result import Result


def test_a_setting_is_what_was_given_or_the_default():
    result = made_result(settings={"bc_weight": 0.3, "hidden_sizes": [8, 8], "observation_scale": 4.0})
    assert result.setting("bc_weight") == 0.3
    assert result.setting("hidden_sizes") == (8, 8)
    assert result.setting("observation_scale") == 4.0
    assert result.setting("num_candidates") == 16
    assert result.setting("standardise_observations") is False
    with pytest.raises(InputError, match="unknown setting of drol 'bc_wieght'; did you mean bc_weight"):
        result.setting("bc_wieght")


def test_columns_come_back_as_the_result_from_text_too():
    result = made_result(figures={"candidate_distance": 0.5})
    columns = result.columns()
    assert columns["figure/candidate_distance"] == 0.5
    assert Result.from_dict(columns) == result
    assert Result.from_dict({name: str(value) for name, value in columns.items()}) == result


MISTAKES = {
    "a missing seed": ({"seed": ""}, "seed is missing"),
    "a seed in words": ({"seed": "two"}, "seed is 'two', which is not a number"),
    "settings of others": ({"settings": '{"bc_weight": 1}'}, "settings_id is 44136fa3, which is not that of"),
    "settings that are no JSON": ({"settings": "{"}, "Expecting"),
    "too few outcomes": ({"outcomes": "11"}, "outcomes has 2 characters; it must be 4 of 0 and 1"),
    "another outcome": ({"outcomes": "112x"}, "it must be 4 of 0 and 1"),
    "no score": ({"score": "nan"}, "score is nan; it must be a finite number"),
    "another evaluation": ({"evaluation": "online"}, "evaluation is 'online'; it must be one of training, extra"),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_row_that_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Result.from_dict(made_result().columns() | changes)
