"""`config.json` that is JSON but does not describe a run: one line each."""

import json

import pytest
from toys import tiny_config

from drol.cli.main import main
from drol.errors import InputError
from drol.runs.config_file import read_config, write_config
from drol.runs.run import open_run


def content(**settings):
    return {"run": tiny_config().to_dict() | settings, "dataset_fingerprint": "ab", "circumstances": {}}


def without(name):
    return {key: value for key, value in content().items() if key != name}


BAD = {
    "a list": ([], "does not describe a run"),
    "null": (None, "does not describe a run"),
    "a number": (5, "does not describe a run"),
    "no run": (without("run"), "it has no 'run'"),
    "no fingerprint": (without("dataset_fingerprint"), "it has no 'dataset_fingerprint'"),
    "no circumstances": (without("circumstances"), "it has no 'circumstances'"),
    "circumstances a list": (content() | {"circumstances": []}, r"it has \[\] as 'circumstances'"),
    "a fingerprint of a number": (content() | {"dataset_fingerprint": 5}, "it has 5 as 'dataset_fingerprint'"),
    "no algorithm": (content() | {"run": {"task": "toy"}}, "it has no 'algorithm'"),
    "an algorithm in words": (content(algorithm="drol"), "it has 'drol' as 'algorithm'"),
    "an algorithm as a list": (content(algorithm=["drol"]), r"it has \['drol'\] as 'algorithm'"),
    "an algorithm without a name": (content(algorithm={}), "it has no 'name'"),
    "the name a number": (content(algorithm={"name": 5}), "it has 5 as 'name'"),
    "a task of a number": (content(task=5), "it has 5 as 'task'"),
    "steps in words": (content(steps="12"), "steps is '12'; it must be a whole number"),
    "steps below zero": (content(steps=-1), "steps is -1; it must be from 1"),
    "seeds a number": (content(seeds=3), "seeds is 3; it must be one or more whole numbers"),
    "seeds in words": (content(seeds=["a"]), "seeds is .* it must be one or more whole numbers"),
    "a dataset of a number": (content(dataset=5), "dataset is 5; it must be text"),
    "an unknown setting": (content(colour="red"), "unknown setting of a run 'colour'"),
    "an unknown hyperparameter": (content(algorithm={"name": "drol", "x": 1}), "unknown hyperparameter of DROL 'x'"),
    "a hyperparameter in words": (content(algorithm={"name": "drol", "bc_weight": "x"}), "bc_weight is 'x'"),
    "a newer format": (
        content() | {"format": 2},
        "has format 2 of a run, and this drol reads 1: a newer",
    ),
    "a format in words": (content() | {"format": "x"}, "has format 'x' of a run; this drol reads 1"),
}


@pytest.mark.parametrize(("value", "message"), BAD.values(), ids=BAD)
def test_what_is_no_run_is_one_line(tmp_path, value, message):
    (tmp_path / "config.json").write_text(json.dumps(value))
    with pytest.raises(InputError, match=message) as caught:
        open_run(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe", b"[" * 100_000, b'{"run":' * 500 + b"1" + b"}" * 500, b" " * 5_000_000], ids=range(5)
)
def test_what_is_not_json_or_too_deep_or_too_large_is_one_line(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(InputError) as caught:
        open_run(tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("command", ["train", "evaluate", "report"])
@pytest.mark.parametrize("value", [[], content(steps="12"), without("circumstances")], ids=["list", "steps", "place"])
def test_every_command_answers_in_one_line(tmp_path, capsys, command, value):
    (tmp_path / "config.json").write_text(json.dumps(value))
    flags = ["--preset", "laptop", "--out"] if command == "train" else []
    assert main([command, *flags, str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "does not describe a run" in printed
    assert printed.count("\n") == 1


def test_a_run_that_is_older_than_the_format_is_read(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(content()))
    assert read_config(tmp_path)["run"] == tiny_config().to_dict()
    write_config(tmp_path, content())
    assert read_config(tmp_path) == {"format": 1, **content()}
