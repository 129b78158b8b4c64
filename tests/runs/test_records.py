import json
import sys

import pytest

from drol.errors import InputError
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow, Rows, newest_scores
from drol.tasks.base import Episode

PLAYED = EvaluationRow(
    5, 1, 50.0, (Episode(0, -3.0, 4, True), Episode(1, -9.0, 9, False, "it broke")), validation={"a": 1.5}, seconds=2.0
)
ROWS = [
    MetricsRow(4, 0, {"actor_loss": 0.5, "diagnostics/a": 2.0}),
    PLAYED,
    EvaluationRow(5, 1, offline={"outside_support": 0.1}, validation={}),
    EvaluationRow(5, 1, 30.0, best_of=4),
    OfflineRow(6, 0, 1, 0.99, 5000, True, 3.5, {"value": -2.0, "own_value": None}),
    OnlineEpisodeRow(7, 0, -3.5, 12, False, "it broke"),
    OnlineEpisodeRow(7, 0, -3.5, 12, True),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_a_row_survives_json(row):
    assert type(row).from_dict(json.loads(json.dumps(row.to_dict()))) == row


def test_a_row_on_the_disk_is_flat_and_has_the_names_that_the_documents_say():
    assert list(ROWS[0].to_dict()) == ["step", "seed", "actor_loss", "diagnostics/a"]
    assert list(PLAYED.to_dict()) == ["step", "seed", "seconds", "validation", "score", "episodes"]
    assert PLAYED.to_dict()["episodes"][0] == {"seed": 0, "return": -3.0, "length": 4, "success": True}
    assert list(ROWS[4].to_dict())[-2:] == ["value", "own_value"]


def test_the_columns_of_an_evaluation_sum_its_episodes_up():
    assert PLAYED.columns() == {
        "step": 5, "seed": 1, "best_of": None, "score": 50.0, "episodes": 2, "successes": 1, "failures": 1,
        "mean_return": -6.0, "mean_length": 6.5, "validation/a": 1.5,
    }  # fmt: skip
    assert PLAYED.failures == ["it broke"]


def test_newest_scores_are_those_of_the_last_step_that_has_some():
    rows = [EvaluationRow(step, seed, 10.0 * step + seed) for step in (0, 1) for seed in (0, 1)]
    assert newest_scores(rows) == [10.0, 11.0]
    assert newest_scores([EvaluationRow(0, 0, offline={})]) is None
    assert newest_scores([]) is None


def test_to_pandas_needs_pandas(monkeypatch):
    rows = Rows([PLAYED, ROWS[3]])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        rows.to_pandas()


def test_to_pandas_hands_over_a_column_for_each_number(monkeypatch):
    class Pandas:
        """Stands for pandas where it is not installed: keeps what a DataFrame would be made of."""

        DataFrame = list

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    assert Rows([PLAYED]).to_pandas() == [PLAYED.columns()]
