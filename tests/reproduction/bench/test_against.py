import sys
import textwrap

import pytest

from drol.errors import InputError
from drol_reproduction.bench.against import against_timer, load_against

THEIRS = """
    def good(): return lambda: None
    def named(): return (lambda: None), "another code"
    def number(): return 3
    def broken(): raise ValueError("no\\nGPU")
    def breaks_later():
        def update(): raise RuntimeError("lost")
        return update
"""


@pytest.fixture
def their_code(tmp_path, monkeypatch):
    (tmp_path / "their_code.py").write_text(textwrap.dedent(THEIRS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("their_code", None)


def test_the_update_of_other_code_comes_from_this_folder(their_code):
    assert load_against("their_code:good").name == "their_code:good"
    assert load_against("their_code:named").name == "another code"


WRONG = {
    "their_code": "--against is 'their_code'; it must be module:function",
    "their_code:": "--against is 'their_code:'; it must be module:function",
    "no_such_code:make": "--against no_such_code:make: module 'no_such_code' is neither here nor installed",
    "their_code:absent": "module 'their_code' has no attribute 'absent'",
    "their_code:number": "--against their_code:number returned int; it must be a callable that updates once",
    "their_code:broken": "--against their_code:broken raised ValueError: no GPU",
}


@pytest.mark.parametrize(("place", "message"), WRONG.items(), ids=WRONG)
def test_other_code_that_cannot_be_used_is_one_line(their_code, place, message):
    with pytest.raises(InputError) as caught:
        load_against(place)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_update_that_breaks_is_one_line(their_code):
    timer = against_timer(load_against("their_code:breaks_later"))
    with pytest.raises(InputError, match="the update of --against their_code:breaks_later raised RuntimeError: lost"):
        timer()
