import dataclasses
import json

import drol_runtime
import numpy as np
import pytest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.algorithms import ALGORITHMS
from drol.data.actions import ActionBox
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.export import export as export_module
from drol.export import onnx_file, stablehlo
from drol.export.export import export_policy

SMALL = {"hidden_sizes": (16, 12), "batch_size": 16}


def made_run(path, name="drol", **hyperparameters):
    config = tiny_config(algorithm=ALGORITHMS[name](**SMALL, **hyperparameters))
    saved_run(path, config, (6, 12))
    return drol.open_run(path, task=tiny_task())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_acts_in_numpy_and_in_onnx_as_it_was_trained(name, tmp_path):
    run = made_run(tmp_path / "run", name)
    for best_of in (1, 5) if ALGORITHMS[name].draws_actions else (None,):
        exported = export_policy(run, tmp_path / f"bundle-{best_of}", best_of=best_of, onnx=True)
        assert set(exported.differences) == {"bundle", "onnx"}
        assert max(exported.differences.values()) < 5e-6
        assert drol_runtime.check(exported.path) < 5e-6


@pytest.mark.parametrize("name", ["drol", "sorl"])
def test_stablehlo_takes_any_batch(name, tmp_path):
    run = made_run(tmp_path / "run", name)
    exported = export_policy(run, tmp_path / "bundle", best_of=3, stablehlo_file=True)
    assert exported.differences["stablehlo"] < 5e-6
    tests = drol_runtime.read_bundle(exported.path).tests()
    act = export_module.stablehlo.load(exported.path)
    np.testing.assert_allclose(act(tests["observation"][:2], tests["latent"][:2]), tests["action"][:2], atol=1e-5)


def test_actions_are_in_the_units_of_the_data_and_observations_are_standardised(tmp_path):
    run = made_run(tmp_path / "run")
    policy = run.policy()
    mean, deviation = np.asarray([1.0, -2.0, 0.5]), np.asarray([2.0, 0.5, 3.0])
    changed = drol.Policy(
        policy.algorithm,
        policy.networks,
        Standardisation.from_moments(mean, deviation),
        ActionBox((-10.0, 0.0), (30.0, 1.0)),
    )
    run.policy = lambda step=None, seed=None: changed
    exported = export_policy(run, tmp_path / "bundle", onnx=True, stablehlo_file=True)
    assert max(exported.differences.values()) < 5e-6
    robot = drol_runtime.load(exported.path)
    found = robot.act(drol_runtime.read_bundle(exported.path).tests()["observation"], seed=3)
    assert found[:, 0].min() >= -10
    assert found[:, 0].max() > 1
    assert robot.description["action"]["low"] == [-10.0, 0.0]


def test_a_dimension_without_width_has_its_one_value_in_every_output(tmp_path):
    run = made_run(tmp_path / "run")
    boxed = dataclasses.replace(run.policy(), action_box=ActionBox((-10.0, 0.3), (30.0, 0.3)))
    run.policy = lambda step=None, seed=None: boxed
    exported = export_policy(run, tmp_path / "bundle", onnx=True, stablehlo_file=True)
    assert max(exported.differences.values()) < 5e-6
    tests = drol_runtime.read_bundle(exported.path).tests()
    observation, latent = tests["observation"], tests["latent"]
    outputs = [tests["action"], drol_runtime.load(exported.path).act(observation, seed=3)]
    outputs += [module.load(exported.path)(observation, latent) for module in (onnx_file, stablehlo)]
    for found in outputs:
        assert (found[:, 1] == np.float32(0.3)).all()
        assert (found[:, 0] != found[0, 0]).any()


def test_the_bundle_says_what_it_is(tmp_path):
    run = made_run(tmp_path / "run")
    export_policy(run, tmp_path / "bundle", step=6, seed=7, best_of=4)
    found = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    assert (found["algorithm"], found["task"], found["step"], found["seed"]) == ("drol", "toy", 6, 7)
    assert found["settings"] == json.loads(json.dumps(run.config.algorithm.to_dict()))
    assert (found["sampler"]["prior"], found["sampler"]["best_of"], found["sampler"]["aggregation"]) == (
        "ball",
        4,
        "mean",
    )
    rows = np.asarray(run.task.train.observation)
    assert found["observation"]["low"][0] >= rows[:, 0].min()
    assert found["observation"]["high"][0] > found["observation"]["low"][0]


def test_the_control_rate_of_the_data_goes_with_the_bundle(tmp_path):
    run = made_run(tmp_path / "run")
    run.task = dataclasses.replace(run.task, control_rate=20.0)
    export_policy(run, tmp_path / "bundle")
    assert drol_runtime.load(tmp_path / "bundle").control_rate == 20.0


def test_more_draws_than_a_bundle_may_have_are_rejected_at_once(tmp_path):
    with pytest.raises(InputError, match="best_of is 99,999,999; a bundle draws at most 65,536 actions"):
        export_policy(made_run(tmp_path / "run"), tmp_path / "bundle", best_of=99_999_999)


def test_names_units_and_frames_go_with_every_output(tmp_path):
    run = made_run(tmp_path / "run")
    policy = run.policy()
    seen = drol.Dimensions(("x", "y", "speed"), ("m", "m", "m/s"), ("world", "world", "base"))
    named = dataclasses.replace(policy, observation_dimensions=seen, action_dimensions=drol.Dimensions(("a", "b")))
    run.policy = lambda step=None, seed=None: named
    exported = export_policy(run, tmp_path / "bundle", onnx=True)
    robot = drol_runtime.load(exported.path)
    assert (robot.observation_names, robot.action_names) == (["x", "y", "speed"], ["a", "b"])
    entry = robot.description["observation"]
    assert (entry["units"], entry["frames"]) == (["m", "m", "m/s"], ["world", "world", "base"])
    values = {"speed": 0.3, "x": 0.1, "y": 0.2}
    np.testing.assert_array_equal(robot.act(values, seed=0), robot.act([0.1, 0.2, 0.3], seed=0))
    import onnx

    texts = {each.key: json.loads(each.value) for each in onnx.load(exported.path / "policy.onnx").metadata_props}
    assert texts["observation_names"] == ["x", "y", "speed"]
    assert texts["action_names"] == ["a", "b"]


def test_an_output_that_differs_is_not_published(tmp_path, monkeypatch):
    run = made_run(tmp_path / "run")
    monkeypatch.setattr(drol_runtime.networks, "SHIFT", np.float32(0))
    with pytest.raises(InputError, match=r"the bundle differs from the trained policy by .*; nothing was written"):
        export_policy(run, tmp_path / "out" / "bundle")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_cannot_be_exported_is_refused_in_one_line(tmp_path):
    run = made_run(tmp_path / "run")
    export_policy(run, tmp_path / "bundle")
    with pytest.raises(InputError, match="holds a bundle; name another folder, or add --replace"):
        export_policy(run, tmp_path / "bundle")
    assert export_policy(run, tmp_path / "bundle", replace=True).path == tmp_path / "bundle"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match="exists and is not a bundle"):
        export_policy(run, tmp_path / "mine", replace=True)
    with pytest.raises(InputError, match="/ is the root of the file system; name a new folder"):
        export_policy(run, "/")
    with pytest.raises(InputError, match="no policy of step 5"):
        export_policy(run, tmp_path / "other", step=5)
    with pytest.raises(InputError, match=r"chooser is lcb and support_weight is 0\.0; only a policy that chooses by"):
        export_policy(made_run(tmp_path / "choice", "drol-choice", chooser="lcb"), tmp_path / "other")
    assert not (tmp_path / "other").exists()
