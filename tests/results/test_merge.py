import pytest
from made_results import VERSIONS, made_result

from drol.errors import InputError
from drol.results.merge import check_results, merge_results
from drol.results.result_files import write_results


@pytest.fixture
def merge(tmp_path):
    """Write each list of results to a separate file and merge the files."""

    def call(*lists, **options):
        return merge_results(files(tmp_path, lists), **options)

    return call


def files(folder, lists):
    paths = [folder / f"{number}.csv" for number in range(len(lists))]
    for results, path in zip(lists, paths, strict=True):
        write_results(results, path)
    return paths


def test_the_same_result_is_kept_once_whatever_its_run_is_called(merge):
    (merged,) = merge([made_result(), made_result(seed=1)], [made_result(seed=1, run="copy/one"), made_result(seed=2)])
    assert [(row.seed, row.run) for row in merged] == [(0, "runs/one"), (1, "runs/one"), (2, "runs/one")]


def test_the_evaluations_of_a_run_that_went_on_are_those_of_the_longer_run(merge):
    short = [made_result(step=step, steps=20) for step in (10, 20)]
    longer = [made_result(step=step, steps=40, mean_return=float("nan")) for step in (10, 20, 30, 40)]
    for lists in ((short, longer), (longer, short), (longer, longer, short)):
        (merged,) = merge(*lists)
        assert [(row.step, row.steps) for row in merged] == [(step, 40) for step in (10, 20, 30, 40)]


OTHERS = {
    "data": ({"dataset_fingerprint": "cd" * 32}, "dataset_fingerprint is abababab in runs/one and cdcdcdcd in runs/b"),
    "timing": ({"success_timing": "after"}, "success_timing is before in runs/one and after in runs/b"),
    "ogbench": (
        {"versions": VERSIONS.replace("1.2.2", "1.1.0")},
        "ogbench is 1.2.2 in runs/one and 1.1.0 in runs/b",
    ),
    "no simulator": ({"versions": "drol 0.1.0"}, "gymnasium is 1.2.0 in runs/one and unknown in runs/b"),
}


@pytest.mark.parametrize(("changes", "message"), OTHERS.values(), ids=OTHERS)
def test_what_does_not_belong_together_is_refused_or_kept_apart(merge, changes, message):
    ours, theirs = [made_result(), made_result(seed=1)], [made_result(seed=2, run="runs/b", **changes)]
    with pytest.raises(InputError, match=f"incompatible results: on maze, {message}"):
        merge(ours, theirs)
    first, second = merge(theirs, ours, keep_apart=True)
    assert [row.seed for row in first] == [0, 1]  # more of them
    assert [row.seed for row in second] == [2]


def test_other_versions_of_jax_and_other_data_of_another_task_belong_together(merge):
    other = made_result(seed=1, versions=VERSIONS.replace("0.10.1", "0.11.0"))
    (merged,) = merge([made_result(), made_result(task="cube", dataset_fingerprint="ee")], [other])
    assert len(merged) == 3


def test_two_scores_of_one_policy_are_a_contradiction(merge):
    with pytest.raises(
        InputError, match=r"drol 44136fa3 on maze, seed 0, step 10, .* scores 75 in runs/one and 50 in b"
    ):
        merge([made_result("1110")], [made_result("1100", run="b")])
    (merged,) = merge([made_result("1110")], [made_result("1100", run="b", evaluation="extra")])
    assert len(merged) == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_evaluations_of_other_episodes_are_no_contradiction(merge, order):
    """Two scores of 0 from 50 and 10 episodes were called contradictory."""
    pair = [made_result("0" * 50), made_result("0" * 10, run="b", steps=20)]
    (merged,) = merge(*([pair[each]] for each in order))
    assert [each.episodes for each in merged] == [50]
    (merged,) = merge([made_result("1110")], [made_result("000000", run="b", first_episode_seed=4)])
    assert [each.episodes for each in merged] == [6]
    with pytest.raises(InputError, match="different scores of the same policy"):
        merge([made_result("1110")], [made_result("010", run="b", first_episode_seed=2)])


def test_a_check_names_all_that_is_wrong(tmp_path):
    rows = [made_result("1110"), made_result("1100", run="b"), made_result(seed=1), made_result(episodes=3)]
    rows += [
        made_result(method="fql", step=5),
        made_result(task="cube"),
        made_result(task="cube", success_timing="after"),
    ]
    found = check_results(files(tmp_path, [rows]))
    assert [next(word for word in WORDS if word in line) for line in found] == list(WORDS)


WORDS = (
    "line 5: outcomes: expected 3 characters 0 or 1, got 4 characters",
    "on cube, success_timing is before in runs/one and after",
    "scores 75 in runs/one and 50 in b",
    "fql 44136fa3 on maze lacks seed 1 of other groups",
    "fql 44136fa3 on maze: seed 0 was last evaluated after 5 of 10 updates",
)


def test_nothing_is_wrong_with_whole_results(tmp_path):
    assert check_results(files(tmp_path, [[made_result(), made_result(seed=1, step=5), made_result(seed=1)]])) == []
