import numpy as np
import pytest

from drol.errors import InputError
from drol.results.trials import Round, Tally, append_result, make_plan, plan_trials, read_result, read_results_file

NAMES = tuple("abcdefgh")


def test_a_plan_halves_the_policies_and_uses_the_trials():
    assert make_plan(8, 24) == (Round(8, 1), Round(4, 2), Round(2, 4))
    assert make_plan(8, 42) == (Round(8, 1), Round(4, 4), Round(2, 9))
    assert make_plan(2, 10) == (Round(2, 5),)
    assert make_plan(1, 5) == (Round(1, 5),)
    for candidates in range(1, 12):
        for trials in range(3 * candidates, 60):
            used = sum(each.candidates * each.trials for each in make_plan(candidates, trials))
            assert trials - used < 2


def play(chances, trials, generator):
    """Follow the plan on policies with known chances of success; return the policy that it takes."""
    results = []
    state = plan_trials(NAMES[: len(chances)], trials)
    while not state.finished:
        for name, count in state.due.items():
            results.append((name, Tally(int(generator.binomial(count, chances[NAMES.index(name)])), count)))
        state = plan_trials(NAMES[: len(chances)], trials, results)
    assert sum(tally.trials for tally in state.tallies.values()) <= trials
    return state.best


def test_twenty_four_trials_find_a_good_policy_of_eight():
    generator = np.random.default_rng(0)
    taken, best, mean = [], [], []
    for _ in range(300):
        chances = generator.beta(0.9, 0.6, 8)  # many good policies and many bad ones, as in sweeps
        taken.append(chances[NAMES.index(play(chances, 24, generator))])
        best.append(chances.max())
        mean.append(chances.mean())
    assert np.mean(best) - np.mean(taken) < 0.08
    assert np.mean(taken) - np.mean(mean) > 0.25


def test_rounds_keep_the_better_half_and_the_order_breaks_ties():
    first = [(name, Tally(int(name in "cfh"), 1)) for name in NAMES]
    state = plan_trials(NAMES, 24, first)
    assert (state.round, state.left, state.due) == (1, tuple("cfha"), dict.fromkeys("cfha", 2))
    # A kept policy stays for its round, even with poor results.
    state = plan_trials(NAMES, 24, [*first, ("c", Tally(0, 2)), ("f", Tally(2, 2))])
    assert (state.round, set(state.left), state.due) == (1, set("cfha"), {"h": 2, "a": 2})
    state = plan_trials(NAMES, 24, [*first, *((name, Tally(int(name in "hf") * 2, 2)) for name in "cfha")])
    assert (state.round, state.left, state.due) == (2, ("f", "h"), {"f": 4, "h": 4})
    rest = [("f", Tally(4, 4)), ("h", Tally(1, 4))]
    done = plan_trials(NAMES, 24, [*first, *((name, Tally(int(name in "hf") * 2, 2)) for name in "cfha"), *rest])
    assert done.finished
    assert done.verdict.startswith("take f: 7 of 7 trials succeeded, 95% interval 65 to 100%; with so few trials it")


def test_policies_beyond_a_third_of_the_trials_are_left_out():
    assert plan_trials(NAMES, 12).left_out == tuple("efgh")
    with pytest.raises(InputError, match="trials is 2; it must be a whole number of at least 3"):
        plan_trials(NAMES, 2)


def test_results_are_read_from_texts_and_files(tmp_path):
    assert read_result("runs/a:1=1/3") == ("runs/a:1", Tally(1, 3))
    with pytest.raises(InputError, match=r"the result is 'a=1'; expected POLICY=SUCCESSES/TRIALS"):
        read_result("a=1")
    path = tmp_path / "trials.csv"
    append_result(path, "a", Tally(1, 1))
    append_result(path, "b", Tally(0, 1))
    assert path.read_text() == "policy,successes,trials\na,1,1\nb,0,1\n"
    assert read_results_file(path) == [("a", Tally(1, 1)), ("b", Tally(0, 1))]
    path.write_text("policy,successes,trials\na,x,1\n")
    with pytest.raises(InputError, match=r"trials.csv: line 2: successes and trials must be whole numbers"):
        read_results_file(path)
    path.write_text("policy,trials\n")
    with pytest.raises(InputError, match="no column 'successes'"):
        read_results_file(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_results_file(tmp_path / "none.csv")


def test_results_that_cannot_be_are_errors():
    with pytest.raises(InputError, match=r"a: 2 of 1 trials"):
        plan_trials(NAMES, 24, [("a", Tally(2, 1))])
    with pytest.raises(InputError, match="policy of the trials"):
        plan_trials(NAMES, 24, [("x", Tally(1, 1))])
