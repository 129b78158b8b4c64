import sys
import warnings
from importlib import metadata

import pytest

import drol.algorithms
from drol.algorithms import (
    ALGORITHMS,
    BC,
    DROL,
    REGISTERED,
    Algorithm,
    algorithm_name,
    find_algorithm,
    known_algorithms,
    load_entry_points,
    register_algorithm,
)
from drol.errors import InputError


class Mine(Algorithm):
    """An algorithm that is found by an entry point below."""


class Other(Algorithm):
    """Another one."""


not_an_algorithm = 3


@pytest.mark.parametrize("kind", ALGORITHMS.values())
def test_the_header_of_an_algorithm_links_its_paper_and_defines_m(kind):
    header = sys.modules[kind.__module__].__doc__
    assert "https://arxiv.org/abs/" in header or "No paper describes it" in header
    assert ("gamma m " in header) == ("m = 1 - terminal (`batch.continues`)" in header)


@pytest.fixture
def installed(monkeypatch):
    """Tell what entry points there are; afterwards nothing of it is left."""
    asked = []

    def install(**values):
        def entry_points(group):
            asked.append(group)
            return [metadata.EntryPoint(name, value, group) for name, value in values.items()]

        monkeypatch.setattr(drol.algorithms.metadata, "entry_points", entry_points)
        return asked

    before = dict(REGISTERED)
    load_entry_points.cache_clear()
    yield install
    load_entry_points.cache_clear()
    REGISTERED.clear()
    REGISTERED.update(before)


def test_every_algorithm_is_known_by_its_name_and_drol_is_first():
    assert list(ALGORITHMS)[:2] == ["drol", "drol-equation"]
    assert len(ALGORITHMS) == 16
    for name, kind in ALGORITHMS.items():
        assert find_algorithm(name) is kind
        assert algorithm_name(kind()) == algorithm_name(kind) == name
        assert getattr(drol.algorithms, kind.__name__) is kind


def test_an_unknown_name_is_answered_with_the_nearest_and_all(installed):
    installed()
    with pytest.raises(InputError) as caught:
        find_algorithm("drool")
    assert str(caught.value) == (
        "unknown algorithm 'drool'; did you mean drol? If it is yours, add --import MODULE, or import its module in "
        f"Python. Known: {', '.join(ALGORITHMS)}"
    )


def test_a_registered_algorithm_is_known_by_its_name(installed):
    installed()
    assert algorithm_name(Mine) == "Mine"
    assert register_algorithm("mine_2", Mine) is Mine
    assert register_algorithm("mine_2", Mine) is Mine  # the same again
    assert find_algorithm("mine_2") is Mine
    assert algorithm_name(Mine) == "mine_2"
    assert list(known_algorithms()) == [*ALGORITHMS, "mine_2"]
    assert register_algorithm("other")(Other) is Other
    assert find_algorithm("other") is Other
    assert register_algorithm("drol", DROL) is DROL
    assert "drol" not in REGISTERED


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("drol", BC, "the name 'drol' is taken by drol.algorithms.drol.DROL; choose another one"),
        ("taken", Other, f"the name 'taken' is taken by {__name__}.Mine; choose another one"),
        ("a/b", Mine, "the name of an algorithm is 'a/b'; it must be made of letters, digits, - and _"),
        ("", Mine, "the name of an algorithm is ''; it must be made of letters, digits, - and _"),
        ("mine\n", Mine, "the name of an algorithm is 'mine\\n'; it must be made of letters, digits, - and _"),
        ("mine", int, "<class 'int'> cannot be registered as 'mine'; it must be a subclass of drol.Algorithm"),
        ("mine", 5, "5 cannot be registered as 'mine'; it must be a subclass of drol.Algorithm"),
    ],
)
def test_what_cannot_be_registered_is_refused(installed, name, kind, message):
    installed()
    register_algorithm("taken", Mine)
    with pytest.raises(InputError) as caught:
        register_algorithm(name, kind)
    assert str(caught.value) == message


def test_algorithms_of_installed_packages_are_loaded_once_and_all_together(installed):
    asked = installed(mine=f"{__name__}:Mine", other=f"{__name__}:Other")
    assert asked == []
    assert find_algorithm("drol") is DROL
    assert known_algorithms() == ALGORITHMS | {"mine": Mine, "other": Other}
    assert algorithm_name(Other) == "other"
    assert asked == ["drol.algorithms"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module:Mine", "ModuleNotFoundError: No module named 'no_such_module'"),
        (f"{__name__}:Missing", f"AttributeError: module '{__name__}' has no attribute 'Missing'"),
        (f"{__name__}:not_an_algorithm", "InputError: 3 cannot be registered as 'broken'; it must be a subclass of"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_reported_and_left_out(installed, value, why):
    installed(broken=value, mine=f"{__name__}:Mine")
    with pytest.warns(UserWarning, match="the algorithm 'broken' of") as caught:
        assert known_algorithms() == ALGORITHMS | {"mine": Mine}
    assert len(caught) == 1
    assert why in str(caught[0].message)
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known_algorithms()


def test_an_entry_point_does_not_take_the_name_of_another(installed):
    installed(drol=f"{__name__}:Mine")
    with pytest.warns(UserWarning, match="the name 'drol' is taken by drol.algorithms.drol.DROL"):
        assert find_algorithm("drol") is DROL
