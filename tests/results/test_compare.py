import numpy as np
import pytest
from made_results import VERSIONS, made_group, made_result
from scipy import stats

from drol.errors import InputError
from drol.results.compare import compare
from drol.results.result_files import write_results


@pytest.fixture
def compared(tmp_path):
    """A comparison of results that are in a file."""

    def call(*results, **options):
        write_results(results, tmp_path / "results.csv")
        return compare(tmp_path / "results.csv", **options)

    return call


VERDICTS = {
    "better": ([45, 46, 47, 46], [20, 22, 24, 21], "better"),
    "worse": ([20, 22, 24, 21], [45, 46, 47, 46], "worse"),
    "always right": ([50, 50, 50], [50, 50, 50], "equal within 5"),
    "seeds differ": ([10, 40, 30], [35, 12, 20], "underpowered: could detect 83.5 or more"),
    "all or nothing": ([0, 50, 0], [50, 0, 50], "underpowered: no difference could be detected"),
    "two seeds": ([50, 50], [0, 1, 2], "too few seeds: each side needs 3"),
}


@pytest.mark.parametrize(("ours", "theirs", "words"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts(compared, ours, theirs, words):
    (difference,) = compared(*made_group("fql", theirs), *made_group("drol", ours)).differences
    assert difference.words == words
    assert difference.verdict == {"equal within 5": "equal"}.get(words, words.split(":")[0])
    assert difference.value == pytest.approx(2 * (np.mean(ours) - np.mean(theirs)))
    assert difference.interval.low <= difference.value <= difference.interval.high


def test_seeds_that_agree_find_no_more_than_their_episodes_do(compared):
    groups = made_group("fql", [2, 2, 2], 4), made_group("drol", [2, 2, 2], 4, first_episode_seed=100)
    (difference,) = compared(*groups[0], *groups[1]).differences
    assert difference.words == "underpowered: could detect 76.8 or more"  # a seed's deviation is 25 with four episodes
    (difference,) = compared(*made_group("fql", [0] * 3, 4), *made_group("drol", [0] * 3, 4)).differences
    assert difference.verdict == "underpowered"  # no success is not no spread


def test_verdicts_are_corrected_for_all_comparisons(compared):
    """A method is better than the baseline; among five that are compared it is not: one may be by chance."""
    ours, theirs = [40, 49, 45], [20, 33, 30]
    others = [made_group(name, theirs) for name in ("iql", "bc", "sorl", "ifql")]
    (alone,) = compared(*made_group("fql", theirs), *made_group("drol", ours)).differences
    among = compared(*made_group("fql", theirs), *made_group("drol", ours), *(row for own in others for row in own))
    corrected = next(each for each in among.differences if each.group.label == "drol")
    assert (alone.verdict, corrected.verdict) == ("better", "underpowered")
    assert corrected.p == pytest.approx(5 * alone.p)
    assert alone.p < 0.05 < corrected.p
    assert corrected.interval == alone.interval  # which is not corrected
    assert corrected.interval.low > 0


def test_a_difference_that_is_named_says_how_many_seeds_it_needs(compared):
    groups = *made_group("fql", [35, 12, 20]), *made_group("drol", [10, 40, 30]), *made_group("bc", [0])
    named = {each.group.label: each.seeds_needed for each in compared(*groups, difference=20).differences}
    assert named == {"drol": 31, "bc": None}
    assert {each.seeds_needed for each in compared(*groups).differences} == {None}


def test_equal_is_a_matter_of_the_margin(compared):
    groups = *made_group("fql", [50, 50, 50]), *made_group("drol", [49, 49, 49])
    assert compared(*groups, margin=10).differences[0].words == "equal within 10"
    assert compared(*groups, margin=3).differences[0].verdict == "underpowered"


def test_one_seed_has_no_interval_of_a_difference(compared):
    """That of its episodes would leave out what another seed does."""
    (difference,) = compared(*made_group("fql", [48, 48], 80), *made_group("drol", [56], 70)).differences
    assert (difference.interval, difference.p, difference.verdict) == (None, None, "too few seeds")


def test_the_same_episodes_are_paired(compared):
    """Where both fail in the same episodes, the difference is known better than from other ones."""
    other = made_group("drol", [25, 25], first_episode_seed=50)
    paired = compared(*made_group("fql", [25, 25]), *made_group("drol", [25, 25])).differences[0].interval
    apart = compared(*made_group("fql", [25, 25]), *other).differences[0].interval
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_the_wider_of_seeds_and_episodes_counts(compared):
    """Seeds that differ leave more open than 150 episodes do; seeds that agree leave nothing open, episodes do."""
    ours, theirs = [10, 40, 30], [35, 12, 20]
    seeds = stats.ttest_ind(2 * np.array(ours), 2 * np.array(theirs), equal_var=False).confidence_interval()
    different = compared(*made_group("fql", theirs), *made_group("drol", ours)).differences[0].interval
    assert different == pytest.approx(tuple(seeds))
    same = compared(*made_group("fql", [25] * 3), *made_group("drol", [25] * 3, first_episode_seed=50))
    assert same.differences[0].interval == pytest.approx((-11.2, 11.2), abs=0.1)  # statsmodels: 75 of 150, twice


def test_no_two_success_rates_differ_by_more_than_all(compared):
    (difference,) = compared(*made_group("fql", [50, 49]), *made_group("drol", [50, 1])).differences
    assert stats.ttest_ind([100.0, 2.0], [100.0, 98.0], equal_var=False).confidence_interval().low < -100
    assert difference.interval == (-100, 100)


def test_a_return_is_compared_by_seeds_alone(compared):
    values = {"fql": (1.0, 2.0, 3.0), "drol": (2.0, 3.0, 5.0)}
    rows = [
        made_result(method=method, seed=seed, score=score, score_name="return")
        for method, scores in values.items()
        for seed, score in enumerate(scores)
    ]
    assert compared(*rows).differences[0].interval == pytest.approx((-1.78755, 4.45422), abs=1e-4)  # scipy
    assert compared(rows[0], rows[3]).differences[0].interval is None


def test_all_tasks_are_summed_up(compared):
    groups = [*made_group("fql", [10, 20, 15]), *made_group("drol", [20, 30, 25])]
    groups += [*made_group("fql", [0] * 3, task="cube"), *made_group("drol", [50] * 3, task="cube")]
    base, ours = compared(*groups).overall
    assert (base.label, base.improvement) == ("fql", None)
    assert ours.improvement == pytest.approx((8.5 / 9 + 1) / 2)
    assert ours.interquartile_mean == pytest.approx(77.5)  # of 50, 60, 100, 100
    assert ours.interval.low <= 77.5 <= ours.interval.high


def test_interquartile_means_of_other_compositions_are_not_shown(compared):
    groups = [*made_group("fql", [10, 20, 15]), *made_group("drol", [20, 30, 25])]
    groups += [*made_group("fql", [0] * 3, task="cube"), *made_group("drol", [50] * 5, task="cube")]
    comparison = compared(*groups)
    assert [(each.interquartile_mean, each.interval) for each in comparison.overall] == [(None, None)] * 2
    assert comparison.notes[-1].startswith("no IQM: the groups have different tasks or numbers of seeds")


def test_the_baseline_is_the_first_group_or_the_one_that_is_named(compared):
    groups = *made_group("fql", [10, 20]), *made_group("drol", [20, 30])
    assert compared(*groups).baseline == "fql"
    comparison = compared(*groups, baseline="drol")
    assert [each.group.label for each in comparison.differences] == ["fql"]
    with pytest.raises(InputError, match=r"unknown group 'dorl'; did you mean drol\? The groups are: fql, drol"):
        compared(*groups, baseline="dorl")


NOTES = {
    "other data": ([{}, {"method": "fql", "dataset_fingerprint": "cd" * 32}], "on maze, dataset_fingerprint is abab"),
    "versions": ([{}, {"method": "fql", "versions": VERSIONS.replace("3.9.1", "3.11.0")}], "on maze, mujoco is 3.9.1"),
    "steps": ([{}, {"method": "fql", "step": 5}], "after different numbers of updates: drol 10; fql 5"),
    "kinds": (
        [{}, {"task": "hand", "score_name": "normalised score"}],
        "different types of scores (normalised score, success",
    ),
    "no baseline": (
        [{}, {"task": "cube", "method": "fql"}],
        "fql on cube is not compared: drol has no result",
    ),
}


@pytest.mark.parametrize(("changes", "note"), NOTES.values(), ids=NOTES)
def test_what_a_reader_must_know_is_noted(compared, changes, note):
    notes = [each for each in compared(*(made_result(**each) for each in changes)).notes if "no IQM" not in each]
    assert len(notes) == 1
    assert note in notes[0]


def test_the_best_evaluation_and_too_few_are_noted(compared):
    assert "biased upwards" in compared(made_result(), at="best").notes[0]
    assert "fewer than three evaluations" in compared(made_result(), at="last3").notes[0]


MISTAKES = {
    "contradiction": ([{"outcomes": "11"}, {"outcomes": "10"}], {}, "different scores of the same policy: drol"),
    "score names": ([{}, {"seed": 1, "score_name": "return"}], {}, "the scores on maze are 'success (%)' and 'return'"),
    "at": ([{}], {"at": "first"}, "at is 'first'; it must be one of last, best, last3"),
    "margin": ([{}], {"margin": 0}, "margin is 0; it must be above 0"),
    "difference": ([{}], {"difference": -1}, "difference is -1; it must be above 0"),
    "no extra": ([{}], {"evaluation": "extra"}, "no extra evaluation with a score; `drol evaluate` adds"),
}


@pytest.mark.parametrize(("changes", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line(compared, changes, options, message):
    with pytest.raises(InputError) as error:
        compared(*(made_result(**each) for each in changes), **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_extra_evaluations_are_compared_with_each_other(compared):
    extra = [made_result(evaluation="extra", best_of=number, seed=seed) for number in (1, 16) for seed in (0, 1)]
    assert compared(made_result(), *extra, evaluation="extra").labels == ["drol best_of=1", "drol best_of=16"]


def test_files_of_which_nothing_could_be_read_say_why(tmp_path):
    write_results([made_result(score=100.0, outcomes="01")], tmp_path / "results.csv")
    with pytest.raises(InputError, match=r"no readable results to compare: .*line 2: score: expected 50"):
        compare(tmp_path / "results.csv")
    write_results([made_result(), made_result(score=100.0, outcomes="01", seed=1)], tmp_path / "results.csv")
    with pytest.raises(InputError, match="these runs have no extra evaluation"):
        compare(tmp_path / "results.csv", evaluation="extra")


def test_an_interval_without_width_is_none(compared):
    """Of two groups of three seeds that do not overlap every resample gives 1: that does not make it certain."""
    _, ours = compared(*made_group("fql", [10, 11, 12]), *made_group("drol", [40, 41, 42])).overall
    assert (ours.improvement, ours.improvement_interval) == (1.0, None)


def test_differences_print_as_a_table(compared):
    comparison = compared(*made_group("fql", [20, 22, 24, 21]), *made_group("drol", [45, 46, 47, 46]))
    titles, line = repr(comparison.differences).splitlines()
    assert titles.split("  ")[0] == "group"
    assert titles.split() == ["group", "task", "less", "fql", "95%", "interval", "verdict"]
    assert line.split() == ["drol", "maze", "+48.5", "+37.5", "to", "+55.8", "better"]
