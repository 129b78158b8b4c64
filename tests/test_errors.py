import pytest

from drol.errors import InputError, counted, plain, unknown_name


def test_a_message_is_one_line_that_changes_nothing_in_a_terminal():
    message = str(InputError("task 'files/x\ny\x1b[31m\x9b\u202e\udcff' is unknown; é is a letter"))
    assert message == "task 'files/x y\\x1b[31m\\x9b\\u202e\\udcff' is unknown; é is a letter"
    message.encode()


@pytest.mark.parametrize("text", ["", "plain words", "1 × 2 → 3"])
def test_what_is_plain_stays_as_it_is(text):
    assert plain(text) == text


NAMES = ["drol", "sorl", "--help", "--bc-weight", "antmaze-umaze-v2", "pointmaze-medium-navigate-v0"]


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("DROL", "drol"),
        ("--bc-wieght", "--bc-weight"),
        ("pointmaze", "pointmaze-medium-navigate-v0"),
        ("--alpha", None),
        ("elephant", None),
    ],
)
def test_only_a_similar_name_is_suggested(given, suggested):
    message = str(unknown_name("name", given, NAMES))
    hint = f"did you mean {suggested}?" if suggested else f"known: {', '.join(NAMES)}"
    assert message == f"unknown name {given!r}; {hint}"


def test_without_a_similar_name_the_advice_follows():
    assert str(unknown_name("name", "elephant", NAMES, "See the list.")) == "unknown name 'elephant'. See the list."
    assert str(unknown_name("name", "elephant", map(str, range(99)))) == "unknown name 'elephant'"


def test_a_number_has_its_noun_in_the_singular_or_plural():
    assert [counted(number, "run") for number in (0, 1, 2, 1_000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
