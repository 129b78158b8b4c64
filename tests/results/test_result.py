import pytest
from made_results import made_result

from drol.errors import InputError
from drol.results.result import Result


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
    "a missing seed": ({"seed": ""}, "seed: expected an integer, got ''"),
    "a seed in words": ({"seed": "two"}, "seed: expected an integer, got 'two'"),
    "settings of others": ({"settings": '{"bc_weight": 1}'}, "settings_id: expected .*, got 44136fa3"),
    "settings that are no JSON": ({"settings": "{"}, "Expecting"),
    "too few outcomes": ({"outcomes": "11"}, "outcomes: expected 4 characters 0 or 1, got 2 characters"),
    "another outcome": ({"outcomes": "112x"}, "expected 4 characters 0 or 1"),
    "no score": ({"score": "nan"}, "score: expected a finite number, got nan"),
    "deep settings": ({"settings": "[" * 100_000}, "settings: "),
    "a huge score": ({"score": "1.7e308", "score_name": "return"}, r"score: expected a number from -1e\+30 to 1e\+30"),
    "another evaluation": ({"evaluation": "online"}, "evaluation: expected one of extra, training, got 'online'"),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_row_that_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Result.from_dict(made_result().columns() | changes)
