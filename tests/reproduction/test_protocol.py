from made_results import made_result

from drol_reproduction.protocol import paper_settings, protocol_differences, setting_differences

CUBE = "cube-single-play-singletask-task2-v0"


def differences(method="fql", **changes):
    return protocol_differences(
        made_result(task=CUBE, method=method, settings=dict(paper_settings(CUBE, method)) | changes)
    )


def test_the_papers_settings_differ_in_nothing_whatever_k_is():
    assert paper_settings(CUBE, "fql")["alpha"] == 300
    assert differences() == []
    assert differences("drol", num_candidates=4) == []


def test_differences_are_said_with_their_values():
    assert differences(hidden_sizes=[256] * 3, learning_rate=1e-3, standardise_observations=True) == [
        "networks 3x256",
        "rate 0.001",
        "standardise_observations True",
    ]


def test_a_default_where_the_paper_has_another_value_is_a_difference():
    assert setting_differences(CUBE, "fql", {}) == ["alpha 10"]


def test_all_that_is_known_of_a_method_that_nobody_registered_is_said():
    assert setting_differences(CUBE, "mine", {"hidden_sizes": [8, 4]}) == ["networks 8 4"]
