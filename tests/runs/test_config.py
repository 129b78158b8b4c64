import dataclasses
import json

import pytest
from toys import TINY, tiny_config

from drol.algorithms.drol import DROL
from drol.errors import InputError
from drol.runs.config import Difference, RunConfig, differences


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be from 1 to 1,000,000,000,000"),
        ({"steps": 2.5}, "steps is 2.5; it must be a whole number"),
        ({"log_interval": -1}, "log_interval is -1; it must be from 1 to 1,000,000,000,000"),
        ({"evaluation_interval": 0}, "evaluation_interval is 0; it must be from 1 to 1,000,000,000,000"),
        ({"evaluation_episodes": -1}, "evaluation_episodes is -1; it must be from 0 to 1,000,000"),
        ({"observation_scale": 0.0}, "observation_scale is 0.0; it must be from 1e-06 to 1e+06"),
        ({"observation_scale": float("nan")}, "observation_scale is nan; it must be from 1e-06 to 1e+06"),
        ({"online_steps": -1}, "online_steps is -1; it must be from 0 to 1,000,000,000,000"),
        ({"online_data": "half"}, "online_data is 'half'; it must be one of keep, balance"),
        ({"evaluation_seed": -1}, "evaluation_seed is -1; it must be from 0 to 4,294,967,295"),
        ({"checkpoint_interval": True}, "checkpoint_interval is True; it must be a whole number"),
        ({"seeds": (0, -1)}, "seeds is (0, -1); it must be from 0 to 4,294,967,295"),
        ({"seeds": ()}, "seeds is (); it must be one or more whole numbers"),
        ({"steps": 10**30}, f"steps is {10**30}; it must be from 1 to 1,000,000,000,000"),
        ({"observation_scale": "2"}, "observation_scale is '2'; it must be a number"),
        ({"standardise_observations": 1}, "standardise_observations is 1; it must be true or false"),
        ({"algorithm": "drol"}, "algorithm is 'drol'; it must be an algorithm, such as drol.DROL()"),
        ({"seeds": (1, 2, 1)}, "seeds 1 2 1 has duplicates; each must be given once"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_is_allowed(values, message):
    with pytest.raises(InputError) as caught:
        tiny_config(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["seeds", "evaluation_seed"])
def test_seeds_are_below_two_to_the_32(name):
    """Larger ones are cut to 32 bits by jax, so that two of them could be the same run, and refused by NumPy."""
    tiny_config(**{name: (2**32 - 1,) if name == "seeds" else 2**31})
    with pytest.raises(InputError, match=name):
        tiny_config(**{name: (2**32,) if name == "seeds" else 2**32})


def test_a_configuration_survives_json():
    config = tiny_config(seeds=(3, 1), dataset="data.npz", standardise_observations=True)
    again = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert again.seeds == (3, 1)
    assert again.to_dict()["algorithm"] == {"name": "drol", **json.loads(json.dumps(TINY.to_dict()))}


def test_an_unregistered_algorithm_is_rebuilt_from_its_class():
    class Mine(DROL):
        pass

    config = tiny_config(algorithm=Mine(bc_weight=0.5))
    assert config.to_dict()["algorithm"]["name"] == "Mine"
    again = RunConfig.from_dict(config.to_dict(), Mine)
    assert type(again.algorithm) is Mine
    assert again.algorithm.bc_weight == 0.5
    with pytest.raises(InputError, match=r"unknown algorithm 'Mine'\. If it is yours, .*Known: drol"):
        RunConfig.from_dict(config.to_dict())


def test_unknown_entries_are_refused():
    with pytest.raises(InputError, match="unknown setting of a run 'colour'"):
        RunConfig.from_dict(tiny_config().to_dict() | {"colour": "red"})
    values = tiny_config().to_dict()
    values["algorithm"]["bc_wieght"] = 1.0
    with pytest.raises(InputError, match="unknown hyperparameter of DROL 'bc_wieght'; did you mean bc_weight"):
        RunConfig.from_dict(values)


def test_the_folder_depends_on_everything_but_the_number_of_steps():
    config = tiny_config()
    name = config.folder_name()
    assert name.startswith("toy/drol-")
    assert tiny_config(steps=99, online_steps=9).folder_name() == name
    changes = {
        "algorithm": dataclasses.replace(TINY, bc_weight=0.5),
        "task": "other",
        "seeds": (0,),
        "log_interval": 5,
        "evaluation_interval": 7,
        "evaluation_episodes": 4,
        "evaluation_seed": 1,
        "success_timing": "after",
        "checkpoint_interval": 4,
        "standardise_observations": True,
        "observation_scale": 2.0,
        "online_data": "balance",
        "frame_stack": 2,
        "crop_probability": 0.1,
        "start_from": "runs/other",
        "replay_size": 9,
        "dataset": "data.npz",
    }
    assert changes.keys() | {"steps", "online_steps"} == {field.name for field in dataclasses.fields(RunConfig)}
    names = [dataclasses.replace(config, **{field: value}).folder_name() for field, value in changes.items()]
    assert len({name, *names}) == 1 + len(changes)


def test_equal_configurations_have_the_same_folder_however_their_numbers_are_written():
    whole = tiny_config(algorithm=dataclasses.replace(TINY, bc_weight=1))
    assert differences(whole.to_dict(), tiny_config().to_dict()) == []
    assert whole.folder_name() == tiny_config().folder_name()


def test_differences_are_found_inside_and_said_in_words():
    old, new = tiny_config().to_dict(), tiny_config(steps=20, seeds=(0,)).to_dict()
    new["algorithm"]["bc_weight"] = 0.5
    assert differences(old, old) == []
    found = differences(old, new)
    assert sorted(each.path for each in found) == [("algorithm", "bc_weight"), ("seeds",), ("steps",)]
    assert sorted(map(str, found)) == [
        "bc_weight was 1.0, now 0.5",
        "seeds was [0, 7], now [0]",
        "steps was 12, now 20",
    ]
    assert differences({}, {"a": 1}) == [Difference(("a",), None, 1)]
    assert differences({"a": 1}, {}) == [Difference(("a",), 1, None)]
