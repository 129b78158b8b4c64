import pytest
from toys import TINY, saved_run, tiny_config, tiny_task

from drol.algorithms.bc import BC
from drol.algorithms.ifql import IFQL
from drol.reports.html.tables import (
    OFFLINE_FIGURES,
    offline_table,
    score_table,
    scores_success,
    settings_table,
    spread_of,
    success_interval,
    what_it_plays,
)
from drol.runs.records import EvaluationRow, OfflineRow
from drol.runs.run import Run
from drol.tasks.base import Episode, mean_return


def episodes(*outcomes):
    """Episodes with these returns; a return above 0 is a success."""
    return tuple(Episode(seed, total, 10 + seed, total > 0) for seed, total in enumerate(outcomes))


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"), [(0, 50, 0.0, 0.0713), (50, 50, 0.9287, 1.0), (25, 50, 0.3664, 0.6336)]
)
def test_the_interval_of_success_is_wilsons(successes, count, low, high):
    played = episodes(*[1.0] * successes, *[-1.0] * (count - successes))
    assert success_interval(played) == pytest.approx((low, high), abs=1e-4)


def test_only_success_has_an_interval_of_success():
    returns = {"score": mean_return, "score_name": "normalised score"}
    assert scores_success(tiny_task())
    assert scores_success(tiny_task(score=lambda played: 0.0, score_name="success in two rooms"))
    assert not scores_success(tiny_task(**returns))
    played = episodes(1.0, 2.0, 6.0)
    assert spread_of(played, tiny_task()) == "44 to 100"
    assert spread_of(played, tiny_task(**returns)) == "3 ± 1.53"  # sqrt(7) / sqrt(3)
    assert spread_of(played[:1], tiny_task(**returns)) == "1"


def test_what_was_played_is_what_the_method_does():
    assert what_it_plays(TINY) == "one draw"
    assert what_it_plays(TINY, EvaluationRow(1, 0, best_of=8)) == "the best of 8 draws"
    changed = EvaluationRow(1, 0, best_of=8, acting={"support_weight": 2.0})
    assert what_it_plays(TINY, changed) == "the best of 8 draws, support_weight 2.0"
    assert what_it_plays(IFQL(num_samples=32)) == "the best of 32 draws"
    assert what_it_plays(IFQL(num_samples=32), EvaluationRow(1, 0, best_of=1)) == "one draw"
    assert what_it_plays(BC()) == "its one action"


def test_scores_are_those_of_the_last_step_and_of_later_evaluations(tmp_path):
    directory = saved_run(tmp_path / "run", tiny_config(), ())
    broken = (*episodes(1.0, -1.0), Episode(9, -1.0, 3, False, failure="it fell over"))
    directory.log_extra_evaluation(EvaluationRow(6, 7, 33.3, broken, best_of=16))
    scored = [EvaluationRow(0, 0, 0.0, episodes(-1.0)), EvaluationRow(6, 0, 50.0, episodes(1.0, -1.0))]
    page = score_table(Run(directory, tiny_config(), tiny_task()), scored)
    cells = "".join(f"<td>{each}</td>" for each in ("one draw", "6", "0", "50.0", "9 to 91", "2", "10"))
    assert f"<tr>{cells}</tr>" in page
    assert "<td>the best of 16 draws, afterwards</td><td>6</td><td>7</td><td>33.3</td>" in page
    assert "<td>3 (1 broke)</td>" in page
    assert page.count("<tr>") == 3


def test_offline_figures_are_shown_with_what_they_mean():
    figures = {"single_sample_error": 0.25, "outside_support": 0.125, "value": -3.5, "value_rank": None}
    rows = [OfflineRow(6, 0, 1, 0.99, 5000, True, 2.0, figures), OfflineRow(12, 0, 1, 0.9, 5000, True, 2.0, {})]
    page = offline_table(rows)
    titles = ("updates", "seed", "discount", "error of 1", "outside", "value")
    assert "".join(f"<th>{title}</th>" for title in titles) in page
    assert "<td>6</td><td>0</td><td>0.99</td><td>0.250</td><td>12.5%</td><td>-3.50</td></tr>" in page
    assert "<td>12</td><td>0</td><td>0.9</td><td>-</td><td>-</td><td>-</td></tr>" in page
    assert "<li>outside: share of actions that are farther from the data" in page
    assert "<li>best of 1</li>" in page  # all rows share it
    assert "rank" not in page  # no policy has it
    names = [name for name, *_ in OFFLINE_FIGURES]
    assert len(names) == len(set(names))


def test_settings_are_escaped_and_absent_ones_left_out():
    page = settings_table({"hidden_sizes": (16, 16), "dataset": None, "<b>": "<i>", "options": {"fast": "512"}})
    assert "<th>hidden_sizes</th><td>16 16</td>" in page
    assert "dataset" not in page
    assert "<th>&lt;b&gt;</th><td>&lt;i&gt;</td>" in page
    assert "<td>fast = &#x27;512&#x27;</td>" in page
