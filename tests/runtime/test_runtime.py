"""`drol_runtime`, which a robot runs: NumPy, and nothing of drol."""

import ast
import hashlib
import json
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import drol_runtime
import numpy as np
import pytest
import safetensors.numpy
from drol_runtime.bundle import digest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.export.export import export_policy

SOURCE = Path(drol_runtime.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runtime")
    saved_run(path / "run", tiny_config(), (12,))
    run = drol.open_run(path / "run", task=tiny_task())
    export_policy(run, path / "one")
    export_policy(run, path / "several", best_of=4)
    return path


@pytest.fixture
def policy(folder):
    return drol_runtime.load(folder / "one", seed=0)


OBSERVATION = np.asarray([0.3, -1.0, 0.2])


def test_it_needs_numpy_and_nothing_else(folder):
    code = (
        "import sys; before = set(sys.modules); import drol_runtime, drol_runtime.serve;"
        f"drol_runtime.load({str(folder / 'several')!r}).act([0.0, 0.0, 0.0]);"
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names);"
        "found = {name for name in new if 'cython' not in name};"  # which NumPy is made with
        "sys.exit(repr(found) if found != {'drol_runtime', 'numpy'} else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=SOURCE.parent, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_its_source_is_python_3_9():
    for path in SOURCE.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))
        assert "from __future__ import annotations" in path.read_text() or path.name == "__init__.py"


def test_the_same_seed_or_latent_gives_the_same_action(policy, folder):
    first = policy.act(OBSERVATION, seed=5)
    np.testing.assert_array_equal(policy.act(OBSERVATION, seed=5), first)
    assert (policy.act(OBSERVATION, seed=6) != first).any()
    latent = [0.1, -0.4]
    np.testing.assert_array_equal(
        policy.act(OBSERVATION, latent=latent), policy.act(OBSERVATION, latent=latent, seed=1)
    )
    again = drol_runtime.load(folder / "one", seed=0)
    np.testing.assert_array_equal(
        [again.act(OBSERVATION) for _ in range(3)], [policy.act(OBSERVATION) for _ in range(3)]
    )


def test_a_batch_acts_as_its_rows_do(folder):
    for name in ("one", "several"):
        policy = drol_runtime.load(folder / name)
        tests = drol_runtime.read_bundle(folder / name).tests()
        together = policy.act(tests["observation"], latent=tests["latent"])
        alone = [
            policy.act(row, latent=latent) for row, latent in zip(tests["observation"], tests["latent"], strict=True)
        ]
        np.testing.assert_allclose(together, alone, atol=1e-6)


def test_latents_are_uniform_in_the_ball(policy):
    policy.act(np.zeros((4096, 3)), seed=0)
    latent = policy.workspace(4096).latent[:, 0]
    length = np.linalg.norm(latent, axis=1)
    assert length.max() <= np.sqrt(2) + 1e-5
    assert np.square(length).mean() == pytest.approx(2 * 2 / 4, rel=0.03)  # r^2 d / (d + 2)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ([0.0, float("nan"), 0.0], "NaN, infinite or too large"),
        ([0.0, 1e300, 0.0], "NaN, infinite or too large"),
        ([0.0, 0.0], r"has shape \[2\]; this policy takes \[3\]"),
        (0.0, r"has shape \[\]"),
        (np.zeros((0, 3)), r"has shape \[0, 3\]"),
        (np.zeros((2, 2, 3)), r"has shape \[2, 2, 3\]"),
        (["a", "b", "c"], "it must be numbers"),
        ([None, 1, 2], "it must be numbers"),
        ({"x": 1.0}, "knows no names of observations"),
        (np.ma.masked_array([0.0, 9.0, 0.0], [False, True, False]), "are a masked array"),
    ],
)
def test_what_is_no_observation_is_refused(policy, observation, message):
    with pytest.raises(drol_runtime.InputError, match=message):
        policy.act(observation)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"latent": [0.0, 0.0, 0.0]}, "latent has shape"),
        ({"latent": [0.0, float("inf")]}, "latent has values that are NaN, infinite or too large"),
        ({"latent": [1e300, 0.0]}, "latent has values that are NaN, infinite or too large"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"out": np.zeros(3, np.float32)}, "out is float32"),
        ({"out": np.zeros(2)}, "out is float64"),
        ({"out": [0.0, 0.0]}, "out is list; it must be an array of float32"),
        ({"out": np.broadcast_to(np.float32(0), 2)}, "out is read-only"),
        ({"latent": np.ma.masked_array([0.0, 9.0], [False, True])}, "are a masked array"),
    ],
)
def test_what_is_no_latent_seed_or_output_is_refused(policy, arguments, message):
    with pytest.raises(drol_runtime.InputError, match=message):
        policy.act(OBSERVATION, **arguments)


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("name", ["one", "several"])
@pytest.mark.parametrize("huge", [[LARGEST] * 3, [LARGEST, -LARGEST, LARGEST], [[0.0] * 3, [LARGEST] * 3]])
def test_an_action_that_is_not_finite_is_an_error_and_the_last_one_stays(folder, name, huge):
    policy = drol_runtime.load(folder / name, seed=0)
    policy.networks["actor"].kernels[0] *= 30  # as training makes them; those of the toy are too small to overflow
    out = np.full((*np.shape(huge)[:-1], 2), 0.25, np.float32)
    with pytest.raises(drol_runtime.InputError, match="the action is not finite: the observation or the latent is too"):
        policy.act(huge, out=out)
    assert (out == 0.25).all()
    assert policy.outside == 0
    assert np.isfinite(policy.act(OBSERVATION)).all()


def test_observations_by_name(folder, tmp_path):
    copy_bundle(
        folder / "one", tmp_path / "named", lambda found: found["observation"].update(names=["x", "y", "speed"])
    )
    policy = drol_runtime.load(tmp_path / "named")
    named = policy.act({"speed": 0.2, "x": 0.3, "y": -1.0}, seed=0)
    np.testing.assert_array_equal(named, policy.act(OBSERVATION, seed=0))
    with pytest.raises(drol_runtime.InputError, match="lacks the name 'speed'; this policy takes x, y, speed"):
        policy.act({"x": 0.3, "y": -1.0})
    both = {"speed": [0.2, 0.2], "x": [0.3, 0.3], "y": [-1.0, -1.0]}
    np.testing.assert_array_equal(policy.act(both, seed=0), policy.act([OBSERVATION, OBSERVATION], seed=0))
    with pytest.raises(drol_runtime.InputError, match="different shapes; each must be a number"):
        policy.act({"speed": [0.2, 0.1], "x": 0.3, "y": -1.0})
    with pytest.raises(drol_runtime.InputError, match="are a masked array"):
        policy.act({"x": np.ma.masked_array(0.3, True), "y": -1.0, "speed": 0.0})
    with pytest.raises(drol_runtime.InputError, match="has an unknown name 'z'"):
        policy.act({"x": 0.3, "y": -1.0, "speed": 0.0, "z": 1.0})


def test_observations_outside_the_data_are_counted_and_clamped_if_asked(folder):
    far = [99.0, 0.0, 0.0]
    policy, clamped = drol_runtime.load(folder / "one"), drol_runtime.load(folder / "one", clamp=True)
    edge = [policy.description["observation"]["high"][0], 0.0, 0.0]
    np.testing.assert_array_equal(clamped.act(far, seed=0), policy.act(edge, seed=0))
    assert (policy.act(far, seed=0) != clamped.act(far, seed=0)).any()
    assert (policy.outside, clamped.outside) == (1, 2)


def test_nothing_is_allocated_after_the_first_call(policy):
    out = np.zeros(2, np.float32)
    values = np.asarray(OBSERVATION, np.float32)
    for _ in range(20):
        policy.act(values, out=out)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(200):
        policy.act(values, out=out)
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    grown = sum(
        each.size_diff for each in after.compare_to(before, "filename") if "drol_runtime" in str(each.traceback)
    )
    assert grown < 2000  # bytes, of Python's own small objects; an array of a hidden layer in each call would show


def test_threads_do_not_disturb_each_other(folder):
    policy = drol_runtime.load(folder / "several")
    tests = drol_runtime.read_bundle(folder / "several").tests()
    wrong = []

    def robot(number):
        for _ in range(50):
            found = policy.act(tests["observation"][number], latent=tests["latent"][number])
            if not np.allclose(found, tests["action"][number], atol=1e-5):
                wrong.append(number)

    threads = [threading.Thread(target=robot, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def copy_bundle(source, target, change=lambda found: None, resign=True):
    """Copy a bundle with another description and a recomputed checksum, like a forged one."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    found = json.loads((target / "bundle.json").read_text())
    change(found)
    if resign:
        found["sha256"] = digest(found)
    (target / "bundle.json").write_text(json.dumps(found))
    return target


FORGERIES = {
    "future": lambda found: found.update(format=2),
    "size of text": lambda found: found["observation"].update(size="3"),
    "size of a trillion": lambda found: found["observation"].update(size=10**12),
    "size below one": lambda found: found["action"].update(size=-2),
    "a box of text": lambda found: found["action"].update(low="ab"),
    "a box upside down": lambda found: found["action"].update(low=[2.0, 2.0]),
    "infinite": lambda found: found["action"].update(high=[1e999, 1.0]),
    "names for too few": lambda found: found["observation"].update(names=["x"]),
    "frames that are numbers": lambda found: found["observation"].update(frames=[1, 2, 3]),
    "the same name twice": lambda found: found["observation"].update(names=["x", "x", "y"]),
    "best of many without critics": lambda found: found["sampler"].update(best_of=5),
    "best of a billion": lambda found: found["sampler"].update(best_of=10**9),
    "a whole number of 400 digits": lambda found: found["action"].update(high=[10**400, 1]),
    "no steps": lambda found: found["sampler"].update(steps=[]),
    "a step that is code": lambda found: found["sampler"]["steps"].append("__import__('os')"),
    "an unknown network": lambda found: found["sampler"]["steps"][0].update(network="critics"),
    "other inputs": lambda found: found["sampler"]["steps"][0].update(conditions=[0.5]),
    "more layers": lambda found: found["sampler"]["networks"]["actor"].update(layers=5),
    "layers of text": lambda found: found["sampler"]["networks"]["actor"].update(layers=[]),
    "no rate": lambda found: found.update(control_rate=0),
    "a rate that is text": lambda found: found.update(control_rate="50"),
    "no files": lambda found: found.update(files=[]),
    "a wrong sum": lambda found: found["files"].update({"weights.safetensors": "0" * 64}),
    "a sampler that is a list": lambda found: found.update(sampler=[]),
    "nothing": lambda found: found.clear(),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_bundle_is_refused_in_one_line(name, folder, tmp_path):
    copy_bundle(folder / "one", tmp_path / "forged", FORGERIES[name])
    with pytest.raises(drol_runtime.InputError) as caught:
        drol_runtime.load(tmp_path / "forged")
    assert "\n" not in str(caught.value)


def test_lists_of_any_depth_are_refused_in_one_line(tmp_path):
    limit = sys.getrecursionlimit()
    for depth in (*range(limit - 250, limit), 10 * limit, 100 * limit):
        (tmp_path / "bundle.json").write_text(f'{{"format": 1, "x": {"[" * depth}{"]" * depth}}}')
        with pytest.raises(drol_runtime.InputError, match=r"cannot be read|describe a policy|its checksum"):
            drol_runtime.load(tmp_path)


@pytest.mark.parametrize("shape", [(64, 2), (1,), (64, 1), (3,), (0,)])
def test_a_check_against_stored_actions_that_make_no_sense_is_an_error(folder, tmp_path, shape):
    forged, tests = copy_bundle(folder / "one", tmp_path / "forged"), drol_runtime.read_bundle(folder / "one").tests()
    assert tests["action"].shape == (64, 2)
    action = np.zeros(shape, np.float32)
    action[3:4] = np.nan
    arrays = tests | {"action": action}
    sign(forged, "test.safetensors", safetensors.numpy.save(arrays))
    with pytest.raises(drol_runtime.InputError, match=r"the stored actions must be finite, of shape \[64, 2\]"):
        drol_runtime.check(forged)


def test_without_a_seed_each_call_draws_anew(policy, folder):
    assert len({policy.act(OBSERVATION).tobytes() for _ in range(5)}) == 5
    loaded = [drol_runtime.load(folder / "one").act(OBSERVATION).tobytes() for _ in range(3)]
    assert len(set(loaded)) == 3


def test_the_control_rate_is_read(folder, tmp_path):
    assert drol_runtime.load(folder / "one").control_rate is None
    rated = copy_bundle(folder / "one", tmp_path / "rated", lambda found: found.update(control_rate=20.0))
    assert drol_runtime.load(rated).control_rate == 20.0
    older = copy_bundle(folder / "one", tmp_path / "older", lambda found: found.pop("control_rate"))
    assert drol_runtime.load(older).control_rate is None


def forge_weights(path, change):
    """Change the weights file and sign it again."""
    sign(path, "weights.safetensors", change((path / "weights.safetensors").read_bytes()))


def sign(path, name, content):
    """Write a file of a bundle with the right checksums."""
    (path / name).write_bytes(content)
    found = json.loads((path / "bundle.json").read_text())
    found["files"][name] = hashlib.sha256(content).hexdigest()
    found["sha256"] = digest(found)
    (path / "bundle.json").write_text(json.dumps(found))


def with_header(change):
    def changed(content):
        length = int.from_bytes(content[:8], "little")
        header = json.dumps(change(json.loads(content[8 : 8 + length]))).encode()
        return len(header).to_bytes(8, "little") + header + content[8 + length :]

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: (10**15).to_bytes(8, "little") + content[8:],
        lambda content: content[:8] + b"[" * (len(content) - 8),
        with_header(lambda header: {name: {**entry, "shape": [10**6] * 9} for name, entry in header.items()}),
        with_header(lambda header: {name: {**entry, "data_offsets": [-8, 4]} for name, entry in header.items()}),
        with_header(lambda header: {name: {**entry, "dtype": "F64"} for name, entry in header.items()}),
        with_header(lambda header: {f"{name}x": entry for name, entry in header.items()}),
        with_header(lambda header: list(header)),
        lambda content: content[:-4] + np.float32(np.nan).tobytes(),
    ],
    ids=["empty", "cut", "long header", "brackets", "shapes", "offsets", "type", "names", "list", "nan"],
)
def test_forged_weights_are_refused_in_one_line(change, folder, tmp_path):
    forged = copy_bundle(folder / "one", tmp_path / "forged")
    forge_weights(forged, change)
    with pytest.raises(drol_runtime.InputError) as caught:
        drol_runtime.load(forged)
    assert "\n" not in str(caught.value)


def test_a_damaged_or_missing_file_is_refused(folder, tmp_path):
    with pytest.raises(drol_runtime.InputError, match=r"bundle.json is missing or no plain file"):
        drol_runtime.load(tmp_path)
    copy_bundle(folder / "one", tmp_path / "changed", lambda found: found.update(step=1), resign=False)
    with pytest.raises(drol_runtime.InputError, match=r"bundle.json does not match its checksum"):
        drol_runtime.load(tmp_path / "changed")
    copy_bundle(folder / "one", tmp_path / "flipped")
    content = bytearray((tmp_path / "flipped" / "weights.safetensors").read_bytes())
    content[-3] ^= 1
    (tmp_path / "flipped" / "weights.safetensors").write_bytes(content)
    with pytest.raises(drol_runtime.InputError, match=r"weights.safetensors does not match its checksum"):
        drol_runtime.load(tmp_path / "flipped")
    copy_bundle(folder / "one", tmp_path / "linked")
    (tmp_path / "linked" / "weights.safetensors").unlink()
    (tmp_path / "linked" / "weights.safetensors").symlink_to(folder / "one" / "weights.safetensors")
    with pytest.raises(drol_runtime.InputError, match="is missing or no plain file"):
        drol_runtime.load(tmp_path / "linked")
