import pytest
from run_folders import files
from toys import TINY, saved_run, tiny_config, tiny_task

from drol.algorithms import register_algorithm
from drol.algorithms.drol import DROL
from drol.errors import InputError
from drol.runs.run import Run, open_run
from drol.training.train import train


class Mine(DROL):
    """An algorithm of a user: neither built in nor registered."""


def test_a_trained_run_and_the_same_run_opened_later_say_the_same(tmp_path):
    trained = train(tiny_config(), tmp_path / "run", tiny_task(), processes=2, quiet=True)
    before = files(tmp_path / "run")
    opened = open_run(tmp_path / "run", task=tiny_task())
    for run in (trained, opened):
        assert isinstance(run, Run)
        assert (run.step, run.finished, run.stopped_by) == (12, True, None)
        assert run.config == tiny_config()
        assert run.steps == [0, 6, 12]
        assert [row.step for row in run.metrics] == [4, 4, 8, 8, 12, 12]
        assert run.scores == [row.score for row in run.evaluations[-2:]]
        assert repr(run) == f"Run({str(tmp_path / 'run')!r}, step 12 of 12)"
    assert files(tmp_path / "run") == before  # to look at a run changes nothing


def test_a_run_without_policies_says_so(tmp_path):
    saved_run(tmp_path / "run", tiny_config(), ())
    run = open_run(tmp_path / "run")
    assert (run.step, run.steps, run.scores) == (0, [], None)
    with pytest.raises(InputError, match="has no policy yet; train it first"):
        run.policy()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("data/mine.npz", "do this in the folder in which it was trained"), ("/nowhere/mine.npz", "put it back")],
)
def test_data_that_is_not_found_again_is_named_with_the_run(tmp_path, name, remedy):
    run = Run(saved_run(tmp_path / "run", tiny_config(dataset=name), (0,)), tiny_config(dataset=name))
    with pytest.raises(InputError) as caught:
        run.task  # noqa: B018
    assert str(caught.value) == f"{tmp_path / 'run'} was trained on {name}, which is not there; {remedy}"


def test_an_algorithm_that_is_not_registered_is_given_as_a_class(tmp_path):
    config = tiny_config(algorithm=Mine(**TINY.to_dict()), steps=2)
    train(config, tmp_path / "run", tiny_task(None), quiet=True)
    with pytest.raises(InputError, match=r"unknown algorithm 'Mine'\. If it is yours, .*Known: drol"):
        open_run(tmp_path / "run")
    run = open_run(tmp_path / "run", algorithm=Mine)
    assert type(run.config.algorithm) is Mine
    assert type(run.policy().algorithm) is Mine


def test_registered_it_is_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("drol.algorithms.REGISTERED", {})
    register_algorithm("mine", Mine)
    train(tiny_config(algorithm=Mine(**TINY.to_dict()), steps=2), tmp_path / "run", tiny_task(None), quiet=True)
    assert type(open_run(tmp_path / "run").policy().algorithm) is Mine


def test_nothing_is_imported_because_a_file_names_it(tmp_path, monkeypatch):
    (tmp_path / "wicked.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    directory = saved_run(tmp_path / "run", tiny_config(), (0,))
    config = directory.read_config()
    for name in ("wicked", "wicked.Mine", "wicked:Mine", "../wicked"):
        config["run"]["algorithm"]["name"] = name
        directory.write_config(config)
        with pytest.raises(InputError, match="unknown algorithm"):
            open_run(tmp_path / "run")
