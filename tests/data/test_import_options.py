import pytest
from step_files import refusal

from drol.data.import_options import ReadingOptions, understand_ends


def names_of(*fields):
    return {name: f"{name}s" for name in fields}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"terminal"},
            "there is only terminals; pass --ends terminal or --ends timeout if all are alike, --ends flags",
        ),
        ({"end"}, "there is only ends; pass --ends terminal or --ends timeout if all are alike, or name"),
        ({"timeout"}, "there is only timeouts; pass --ends"),
        ({"episode"}, "there is only episodes; pass --ends"),
        (set(), "nothing says where episodes end; name what does with --terminal"),
    ],
)
def test_an_unclear_end_is_never_guessed(fields, words):
    assert words in refusal(understand_ends, names_of(*fields), ReadingOptions())


def test_the_end_of_a_file_is_no_reason():
    assert "there is only the end of each file" in refusal(understand_ends, {}, ReadingOptions(file_is_episode=True))


@pytest.mark.parametrize("other", ["timeout", "episode"])
def test_terminals_beside_another_mark_are_clear(other):
    assert understand_ends(names_of("terminal", other), ReadingOptions()) == "flags"


def test_terminals_in_files_of_one_episode_are_clear():
    assert understand_ends(names_of("terminal"), ReadingOptions(file_is_episode=True)) == "flags"


@pytest.mark.parametrize("ends", ["terminal", "timeout"])
def test_the_choice_of_the_user_holds(ends):
    assert understand_ends(names_of("terminal", "timeout"), ReadingOptions(ends=ends)) == ends
    assert understand_ends({}, ReadingOptions(ends=ends, file_is_episode=True)) == ends


def test_flags_need_terminals():
    message = refusal(understand_ends, names_of("end"), ReadingOptions(ends="flags"))
    assert message == "ends is flags, but no array marks terminals; name it with --terminal"


@pytest.mark.parametrize(
    ("option", "allowed"),
    [("ends", "flags, terminal, timeout"), ("fill_reward", "zero, end, success")],
)
def test_an_unknown_choice_is_refused(option, allowed):
    message = refusal(lambda: ReadingOptions(**{option: "perhaps"}))
    assert message == f"{option} is 'perhaps'; it must be one of {allowed}"
