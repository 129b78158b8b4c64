"""A fault in a JSON or TOML file is one line: file, path inside it, what was expected, what was found."""

import dataclasses
import math
from typing import Literal, NotRequired, TypedDict

import pytest

from drol.decoding import Checksum, Count, Finite, Setting, convert, parse_json, read_json, read_json_lines, read_toml
from drol.errors import InputError


@dataclasses.dataclass(frozen=True)
class Search:
    kind: Literal["grid", "random"] = "grid"
    samples: int | None = None

    def __post_init__(self):
        if self.samples == 13:
            raise InputError("samples is 13; it must be another number")


class Plan(TypedDict):
    name: str
    counts: NotRequired[dict[str, Count]]
    sums: NotRequired[dict[str, Checksum]]
    numbers: NotRequired[list[Finite]]
    settings: NotRequired[dict[str, Setting]]
    search: NotRequired[Search]
    tables: NotRequired[dict[str, tuple[int, ...] | Search]]


FAULTS = {
    "{": "not JSON (Expecting property name",
    "[" * 100_000: "not JSON (",
    '{"name": NaN}': "not JSON (NaN is not a number)",
    '{"name": "a", "name": "b"}': "not JSON (repeated key 'name')",
    '{"name": ' + "1" * 5000 + "}": "not JSON (Exceeds the limit",
    "[]": "expected an object, got []",
    "{}": "name: missing",
    '{"name": 1}': "name: expected text, got 1",
    '{"name": "a", "nmae": 1}': "nmae: unknown key; did you mean name?",
    '{"name": "a", "counts": {"x": 1, "y": -1}}': "counts.y: expected an integer >= 0, got -1",
    '{"name": "a", "counts": {"x": 1, "a key": true}}': "counts.'a key': expected an integer, got True",
    '{"name": "a", "counts": {"x": 1' + "0" * 30 + "}}": "counts.x: expected an integer <= 4611686018427387904, got 1",
    '{"name": "a", "numbers": [0, 1e999]}': "numbers[1]: expected a number <= 1.0715086071862673e+301, got inf",
    '{"name": "a", "numbers": [0, 1' + "0" * 400 + "]}": "numbers[1]: expected a number, got 1000",
    '{"name": "a", "sums": {"x": "' + "a" * 64 + '\\n"}}': "sums.x: expected text matching regex",
    '{"name": "a", "settings": {"x": {}}}': "settings.x: expected true or false or an integer or a number or text or a",
    '{"name": "a", "search": {"kind": "gird"}}': "search.kind: expected one of grid, random, got 'gird'",
    '{"name": "a", "search": {"sample": 1}}': "search.sample: unknown key; did you mean samples?",
    '{"name": "a", "search": {"samples": 13}}': "search: samples is 13; it must be another number",
    '{"name": "a", "tables": {"x": [1], "y": {"knid": 1}}}': "tables.y.knid: unknown key; did you mean kind?",
    '{"name": "a", "tables": {"x": [1], "y": [1, "b"]}}': "tables.y[1]: expected an integer, got 'b'",
}


@pytest.mark.parametrize(("text", "words"), FAULTS.items(), ids=range(len(FAULTS)))
def test_a_fault_is_one_line_with_its_place(tmp_path, text, words):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_json(path, Plan)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300


def test_bytes_that_are_not_text_and_files_that_are_too_large_are_faults(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    path.write_bytes(b'{"name": "\xff"}')
    with pytest.raises(InputError, match=r"not JSON .'utf-8' codec"):
        read_json(path, Plan)
    monkeypatch.setattr("drol.decoding.LARGEST_BYTES", 10)
    with pytest.raises(InputError, match=r"plan\.json: the file is larger than 10 bytes"):
        read_json(path, Plan)


def test_what_is_right_becomes_the_type(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('name = "a"\nsettings = {sizes = [8, 8], rate = 1}\nsearch = {samples = 3}\n')
    assert read_toml(path, Plan) == {
        "name": "a",
        "settings": {"sizes": (8, 8), "rate": 1},
        "search": Search(samples=3),
    }
    assert convert({"name": "a", "more": 1}, Plan, extra=True) == {"name": "a"}


@pytest.mark.parametrize("text", ["name = 'a'\nname = 'b'", f"a = {'[' * 20_000}", "name"])
def test_a_file_that_is_not_toml_is_one_line(tmp_path, text):
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"plan\.toml: not TOML"):
        read_toml(tmp_path / "plan.toml", Plan)


def test_the_faulty_key_of_many_is_found():
    counts = {f"key{number}": 0 for number in range(1000)} | {"key613": "x"}
    with pytest.raises(InputError, match=r"^counts\.key613: expected an integer, got 'x'$"):
        convert({"name": "a", "counts": counts}, Plan)


def test_lines_are_numbered(tmp_path):
    path = tmp_path / "lines.jsonl"
    assert read_json_lines(path, Search) == []
    path.write_text('{"samples": 1}\n{"samples": "x"}\n')
    with pytest.raises(InputError, match="line 2: samples: expected an integer or null, got 'x'; remove that line"):
        read_json_lines(path, Search)


def test_numbers_that_are_not_finite_are_read_where_they_are_allowed():
    assert math.isnan(parse_json("[NaN, -Infinity]", nan=True)[0])
