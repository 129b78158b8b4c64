"""`config.json` that is JSON but does not describe a run: one line each."""

import json

import pytest
from toys import tiny_config

from drol.cli.main import main
from drol.errors import InputError
from drol.runs.config_file import read_config, write_config
from drol.runs.run import open_run


def content(**settings):
    return {"format": 1, "run": tiny_config().to_dict() | settings, "dataset_fingerprint": "ab", "circumstances": {}}


def without(name):
    return {key: value for key, value in content().items() if key != name}


BAD = {
    "a list": ([], r"expected an object, got \[\]"),
    "null": (None, "expected an object, got None"),
    "a number": (5, "expected an object, got 5"),
    "no run": (without("run"), "run: expected an object"),
    "no fingerprint": (without("dataset_fingerprint"), "dataset_fingerprint: missing"),
    "no circumstances": (without("circumstances"), "circumstances: missing"),
    "circumstances a list": (content() | {"circumstances": []}, r"circumstances: expected an object, got \[\]"),
    "a fingerprint of a number": (content() | {"dataset_fingerprint": 5}, "dataset_fingerprint: expected text, got 5"),
    "no algorithm": (content() | {"run": {"task": "toy"}}, r"run\.algorithm: missing"),
    "an algorithm in words": (content(algorithm="drol"), r"run\.algorithm: expected an object, got 'drol'"),
    "an algorithm as a list": (content(algorithm=["drol"]), r"run\.algorithm: expected an object, got \['drol'\]"),
    "an algorithm without a name": (content(algorithm={}), r"run\.algorithm\.name: missing"),
    "the name a number": (content(algorithm={"name": 5}), r"run\.algorithm\.name: expected text, got 5"),
    "a task of a number": (content(task=5), r"run\.task: expected text, got 5"),
    "steps in words": (content(steps="12"), r"run\.steps: expected an integer, got '12'"),
    "steps below zero": (content(steps=-1), r"config\.json: steps is -1; it must be from 1"),
    "seeds a number": (content(seeds=3), r"run\.seeds: expected a list, got 3"),
    "seeds in words": (content(seeds=["a"]), r"run\.seeds\[0\]: expected an integer, got 'a'"),
    "a dataset of a number": (content(dataset=5), r"run\.dataset: expected text or null, got 5"),
    "an unknown setting": (content(colour="red"), "unknown setting of a run 'colour'"),
    "an unknown hyperparameter": (content(algorithm={"name": "drol", "x": 1}), "unknown hyperparameter of DROL 'x'"),
    "a hyperparameter in words": (content(algorithm={"name": "drol", "bc_weight": "x"}), "bc_weight is 'x'"),
    "a newer format": (
        content() | {"format": 2},
        "format: expected 1 of a run, got 2: a newer",
    ),
    "a format in words": (content() | {"format": "x"}, "format: expected 1 of a run, got 'x'"),
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
    assert f"{tmp_path / 'config.json'}: " in printed
    assert printed.count("\n") == 1


def test_what_was_written_is_read(tmp_path):
    write_config(tmp_path, content())
    assert read_config(tmp_path) == content()
