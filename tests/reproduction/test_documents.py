import pytest

from drol.errors import InputError
from drol_reproduction.documents import fill_blocks, fill_document

TEXT = """# Title
<!-- made by: drol count (two) -->
| old |
<!-- end -->
by hand
<!-- made by: drol other (two) -->
not ours
<!-- end -->
<!-- made by: drol count (one) -->
<!-- end -->
the end
"""


def test_only_what_stands_between_the_marks_of_the_command_changes():
    filled = fill_blocks(TEXT, "drol count", {"one": "1\n", "two": "| a |\n| 2 |"})
    assert filled == TEXT.replace("| old |", "| a |\n| 2 |").replace("(one) -->\n", "(one) -->\n1\n")
    assert fill_blocks(filled, "drol count", {"one": "1", "two": "| a |\n| 2 |"}) == filled


def test_a_text_of_nothing_fits_between_two_lines():
    assert fill_blocks(TEXT, "drol other", {"two": ""}) == TEXT.replace("not ours\n", "\n")


def test_a_document_is_rewritten_in_place(tmp_path):
    path = tmp_path / "count.md"
    path.write_text(TEXT)
    fill_document(path, "drol count", {"one": "1", "two": "2"})
    assert path.read_text() == fill_blocks(TEXT, "drol count", {"one": "1", "two": "2"})
    assert [each.name for each in tmp_path.iterdir()] == ["count.md"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT, "unknown text of `drol count` 'two'. Fix the mark"),
        (TEXT.replace("\n<!-- end -->\nby hand", ""), "has no `<!-- end -->` below it"),
        ("<!-- made by: drol count (one) -->\n", "has no `<!-- end -->` below it"),
        ("nothing is marked\n", "has no mark `<!-- made by: drol count (NAME) -->`; NAME is one of one"),
        (None, "cannot read the document"),
    ],
    ids=["unknown name", "no end before the next", "no end", "no mark", "no file"],
)
def test_a_document_that_cannot_be_filled_is_left_as_it_was(text, message, tmp_path):
    path = tmp_path / "count.md"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as caught:
        fill_document(path, "drol count", {"one": "1"})
    assert message in str(caught.value)
    assert text is None or path.read_text() == text
