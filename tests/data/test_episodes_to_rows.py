"""Steps become transitions as the definition says, step by step, however they are cut into blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drol.data.actions import ActionBox
from drol.data.dataset import Dataset
from drol.data.episodes_to_rows import Assembler, assemble
from drol.data.import_options import ReadingOptions
from drol.data.trajectory_rows import ROW_ARRAYS
from drol.errors import InputError

NAMES = {name: name for name in ("observation", "action", "reward", "terminal", "timeout")}


def steps_of(count, seed=0, ends=(), terminal=True):
    """Steps whose observation is their number; `ends` are terminals or timeouts."""
    generator = np.random.default_rng(seed)
    mark = np.isin(np.arange(count), ends)
    return {
        "observation": np.arange(count, dtype=np.float32)[:, None],
        "action": generator.uniform(-1, 1, (count, 2)).astype(np.float32),
        "reward": generator.normal(size=count).astype(np.float32),
        "terminal": mark & terminal,
        "timeout": mark & (not terminal),
    }


def read_back(rows):
    """The transitions of rows: (observation, action, reward, continues, next observation, next action or None)."""
    found = []
    for row in np.flatnonzero(~rows["last"]):
        known = not rows["last"][row + 1]
        found.append(
            (
                float(rows["observation"][row, 0]),
                tuple(rows["action"][row].tolist()),
                float(rows["reward"][row]),
                float(rows["continues"][row]),
                float(rows["observation"][row + 1, 0]),
                tuple(rows["action"][row + 1].tolist()) if known else None,
            )
        )
    return found


def by_definition(steps, has_next, good_observation, good_rest):
    """The same transitions one step at a time, without blocks or vectors."""
    found = []
    count = len(steps["action"])
    for i in range(count):
        if not good_observation[i] or not good_rest[i]:
            continue
        is_end = steps["terminal"][i] or steps["timeout"][i] or i == count - 1
        following = i + 1 if not is_end else None
        if following is not None and has_next and not (good_observation[following] and good_rest[following]):
            following = None
        if following is not None and not good_observation[following]:
            following = None
        if has_next:
            after = float(steps["next_observation"][i, 0])
            if following is not None and steps["observation"][following, 0] != after:
                following = None
        elif steps["terminal"][i]:
            after = float(steps["observation"][i, 0])
        elif following is None:
            continue
        else:
            after = float(steps["observation"][following, 0])
        known = following is not None
        if known and not has_next:  # the step after must itself be a transition for its action to count
            j = following
            cut = (not steps["terminal"][j]) and (steps["timeout"][j] or j == count - 1 or not good_observation[j + 1])
            known = good_rest[j] and not cut
        found.append(
            (
                float(steps["observation"][i, 0]),
                tuple(steps["action"][i].tolist()),
                float(steps["reward"][i]),
                0.0 if steps["terminal"][i] else 1.0,
                after,
                tuple(steps["action"][following].tolist()) if known else None,
            )
        )
    return found


def in_blocks(steps, cuts, reading):
    assembler = Assembler({name: name for name in steps}, reading)
    parts = []
    for first, stop in zip((0, *cuts), (*cuts, len(steps["action"])), strict=True):
        if stop > first:
            parts.append(assembler.add({name: array[first:stop] for name, array in steps.items()}))
    parts += [assembler.end_file(), assembler.finish()]
    parts = [part for part in parts if part]
    return {name: np.concatenate([part[name] for part in parts]) for name in ROW_ARRAYS}, assembler.counts


@settings(deadline=None, max_examples=200)
@given(data=st.data(), has_next=st.booleans(), seed=st.integers(0, 50))
def test_transitions_are_those_of_the_definition(data, has_next, seed):
    count = data.draw(st.integers(2, 24))
    steps = steps_of(count, seed)
    flags = data.draw(st.lists(st.sampled_from(("", "", "", "terminal", "timeout")), min_size=count, max_size=count))
    for name in ("terminal", "timeout"):
        steps[name] = np.array([flag == name for flag in flags])
    if has_next:
        steps["next_observation"] = steps["observation"] + 1
        for gap in data.draw(st.sets(st.integers(0, count - 1), max_size=3)):
            steps["next_observation"][gap] = 1000 + gap
    bad = {name: data.draw(st.sets(st.integers(0, count - 1), max_size=2)) for name in ("observation", "reward")}
    for name, rows in bad.items():
        for row in rows:
            steps[name][row] = np.nan
    good_observation = np.isfinite(steps["observation"][:, 0])
    good_rest = np.isfinite(steps["reward"])
    expected = by_definition(steps, has_next, good_observation, good_rest)
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=4)))
    reading = ReadingOptions(drop_nonfinite=True)
    if not expected:
        with pytest.raises(InputError, match="not one transition"):
            in_blocks(steps, cuts, reading)
        return
    rows, counts = in_blocks(steps, cuts, reading)
    assert read_back(rows) == expected
    assert rows["last"][-1]
    assert not (rows["last"][1:] & rows["last"][:-1]).any()
    assert counts.steps == count
    assert counts.terminals + counts.cuts == rows["last"].sum()
    Dataset.from_rows(**rows)


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4, 5, 6), (3,)])
def test_the_example_of_the_module_is_true(cuts):
    steps = steps_of(7)
    steps["terminal"][2] = steps["timeout"][4] = True
    rows, _ = in_blocks(steps, cuts, ReadingOptions())
    assert rows["observation"][:, 0].tolist() == [0, 1, 2, 2, 3, 4, 5, 6]
    assert np.flatnonzero(rows["last"]).tolist() == [3, 5, 7]
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 0, 1, 1]
    steps["next_observation"] = steps["observation"] + 1
    steps["next_observation"][[2, 4, 6]] = [[12], [14], [16]]
    rows, _ = in_blocks(steps, cuts, ReadingOptions())
    assert rows["observation"][:, 0].tolist() == [0, 1, 2, 12, 3, 4, 14, 5, 6, 16]
    assert np.flatnonzero(rows["last"]).tolist() == [3, 6, 9]
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 0, 1, 1, 1, 1]


def test_timeouts_bootstrap_and_terminals_do_not():
    rows, counts = assemble(steps_of(8, ends=(3,), terminal=True), ReadingOptions())
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert (counts.terminals, counts.cuts, counts.without_next) == (1, 1, 1)
    rows, counts = assemble(steps_of(8, ends=(3,), terminal=False), ReadingOptions())
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 1, 1, 1, 1]  # steps 3 and 7 are what is seen at the end
    assert (counts.terminals, counts.cuts) == (0, 2)


def test_the_reading_of_ends_can_be_chosen():
    steps = steps_of(6, ends=(2, 5))
    del steps["timeout"]
    rows, _ = assemble(steps, ReadingOptions(ends="terminal"))
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 0, 1, 1, 0]
    rows, _ = assemble(steps, ReadingOptions(ends="timeout"))
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 1, 1]


def test_episodes_by_number_end_where_the_number_changes():
    steps = steps_of(6)
    del steps["timeout"]
    steps["terminal"][2] = True
    steps["episode"] = np.array([4, 4, 4, 7, 7, 7])
    rows, counts = assemble(steps, ReadingOptions())
    assert rows["continues"][~rows["last"]].tolist() == [1, 1, 0, 1, 1]
    assert (counts.terminals, counts.cuts) == (1, 1)


def test_no_episode_goes_on_in_the_next_file():
    assembler = Assembler(NAMES, ReadingOptions())
    parts = [assembler.add(steps_of(3)), assembler.end_file(), assembler.add(steps_of(3)), assembler.end_file()]
    parts = [part for part in [*parts, assembler.finish()] if part]
    assert np.concatenate([part["last"] for part in parts]).tolist() == [False, False, True] * 2


def test_a_reward_is_filled_in_only_when_asked():
    steps = steps_of(6, ends=(2,))
    del steps["reward"]
    with pytest.raises(InputError, match="there is no reward; name it with --reward, compute it with --transform"):
        assemble(steps, ReadingOptions())
    rows, _ = assemble(steps, ReadingOptions(fill_reward="zero"))
    assert not rows["reward"].any()
    for cuts in ((), (1, 2, 3, 4, 5)):
        rows, _ = in_blocks(steps, cuts, ReadingOptions(fill_reward="end"))
        assert rows["reward"][~rows["last"]].tolist() == [0, 0, 1, 0, 1]


BAD = {
    "NaN": ({"observation": np.full((4, 1), np.nan)}, "observation has values that are NaN, infinite .* step 0; fix"),
    "infinity": ({"reward": np.array([0, np.inf, 0, 0])}, "reward has values .* step 1; fix them, or pass --drop"),
    "too large": ({"action": np.array([[0, 0], [0, 1e300], [0, 0], [0, 0]])}, "action has values .* in step 1"),
    "outside": ({"action": np.full((4, 2), 7.0)}, r"action reaches 7 in dimension 0, outside \[-1, 1\]; give the box"),
    "whole numbers": ({"action": np.zeros(4, int)}, "action is int64; actions must be continuous"),
    "text": ({"observation": np.array(list("abcd"))}, "observation is <U1; it must hold plain numbers"),
    "objects": ({"observation": np.array([None] * 4)}, "observation is object; it must hold plain numbers"),
    "complex": ({"reward": np.zeros(4, complex)}, "reward is complex128; it must hold plain numbers"),
    "two rewards": ({"reward": np.zeros((4, 2))}, r"reward has shape \[4, 2\]; it must be one number for each step"),
    "deep actions": (
        {"action": np.zeros((4, 2, 2))},
        r"action has shape \[4, 2, 2\]; it must be \[steps, action size\]",
    ),
    "odd flags": (
        {"terminal": np.array([0, 0.5, 0, 1])},
        "terminal is float64 with values such as 0.5; it must be true",
    ),
    "no numbers": ({"observation": np.zeros((4, 0))}, r"observation has shape \[4, 0\]; a step must have a number"),
    "float images": ({"observation": np.zeros((4, 8, 8, 3))}, "observation is float64 .* images of bytes"),
    "unequal": ({"reward": np.zeros(3)}, "different numbers of steps .*reward 3"),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_named(change, words):
    with pytest.raises(InputError, match=words) as caught:
        assemble(steps_of(4) | change, ReadingOptions())
    assert "\n" not in str(caught.value)


def test_files_must_agree_on_shapes():
    assembler = Assembler(NAMES, ReadingOptions())
    assembler.add(steps_of(4), "one.npz")
    with pytest.raises(InputError, match=r"two.npz: observation has steps of shape \[3\]; \[1\] was found before"):
        assembler.add(steps_of(4) | {"observation": np.zeros((4, 3))}, "two.npz")


def test_nothing_and_a_single_step_are_refused():
    with pytest.raises(InputError, match="holds no step"):
        assemble(steps_of(0), ReadingOptions())
    with pytest.raises(InputError, match="1 steps but not one transition"):
        assemble(steps_of(1), ReadingOptions())


def test_all_problems_are_collected_where_a_report_is_wanted():
    problems = {}
    steps = steps_of(6) | {"action": np.full((6, 2), 3.0)}
    steps["observation"][2] = np.nan
    assembler = Assembler(NAMES, ReadingOptions(), problems)
    assembler.add(steps)
    assembler.end_file()
    assembler.finish()
    assert problems.keys() == {"not finite observation", "box"}
    assert assembler.counts.not_finite == {"observation": 1}


def test_values_after_a_cut_are_not_needed():
    steps = steps_of(4)
    steps["action"][3] = np.nan  # nothing was done after the last observation
    rows, counts = assemble(steps, ReadingOptions())
    assert (~rows["last"]).sum() == 3
    assert counts.not_finite == {}


def test_a_box_scales_actions_and_back():
    box = ActionBox.of((0.0, 1000.0), (10.0, 1001.0), 2)
    action = np.array([[0, 1000], [10, 1001], [5, 1000.5], [2.5, 1000.25]])
    rows, _ = assemble(steps_of(4) | {"action": action}, ReadingOptions(box=box))
    unit = rows["action"][~rows["last"]]
    np.testing.assert_allclose(unit, [[-1, -1], [1, 1], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(box.from_unit(unit), action[:3], atol=1e-4)
    with pytest.raises(InputError, match=r"action reaches 11 in dimension 0, outside the box \[0, 10\]"):
        assemble(steps_of(4) | {"action": action + np.array([1, 0])}, ReadingOptions(box=box))
    flat = ActionBox.of((0.0, 1000.0), (10.0, 1000.0), 2)
    with pytest.raises(InputError, match=r"action reaches 1002 in dimension 1, outside the box \[1000, 1000\]"):
        assemble(steps_of(4) | {"action": action * [1, 0] + [0, 1002]}, ReadingOptions(box=flat))
