import pytest

from drol.errors import InputError, plain


def test_a_message_is_one_line_that_changes_nothing_in_a_terminal():
    message = str(InputError("task 'files/x\ny\x1b[31m\x9b\u202e\udcff' is unknown; é is a letter"))
    assert message == "task 'files/x y\\x1b[31m\\x9b\\u202e\\udcff' is unknown; é is a letter"
    message.encode()


@pytest.mark.parametrize("text", ["", "plain words", "1 × 2 → 3"])
def test_what_is_plain_stays_as_it_is(text):
    assert plain(text) == text
