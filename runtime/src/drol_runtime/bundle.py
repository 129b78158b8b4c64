"""Read a bundle: a JSON description of a policy, and arrays. Every file is checked; nothing in it is executed.

bundle.json            the description of the policy, and the checksums of the other files and of the description
weights.safetensors    the arrays of the networks, mean and standard deviation of the observations
test.safetensors       observations, latents and the actions of the trained policy
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = 1
DESCRIPTION, WEIGHTS, TESTS = "bundle.json", "weights.safetensors", "test.safetensors"
LARGEST_DESCRIPTION = 1 << 24  # bytes
LARGEST_LAYERS = 64
LARGEST_SIZE = 1 << 20  # of a layer, an observation or an action
LARGEST_BEST_OF = 65536
PRIORS = ("none", "normal", "ball")
SQUASHES = ("clip", "tanh")


class InputError(ValueError):
    """A bundle or an observation is invalid; the message is one line with the reason."""


class Bundle(NamedTuple):
    """The content of a bundle.

    Attributes:
        folder: The folder of the bundle.
        description: The content of bundle.json.
        weights: The arrays of the networks by name.
    """

    folder: Path
    description: dict[str, Any]
    weights: dict[str, np.ndarray]

    def tests(self) -> dict[str, np.ndarray]:
        """Return the stored observations, latents and actions."""
        found = read_arrays(self.folder, TESTS, self.description["files"])
        if set(found) != {"observation", "latent", "action"}:
            raise InputError(f"{self.folder / TESTS} has other arrays than a test; export the policy again")
        return found


def read_bundle(folder: str | Path) -> Bundle:
    """Read a bundle and check its version, checksums and sizes.

    Args:
        folder: The folder that `drol export` wrote.
    """
    folder = Path(folder)
    description = read_description(folder)
    weights = read_arrays(folder, WEIGHTS, description["files"])
    check_weights(folder / WEIGHTS, description, weights)
    return Bundle(folder, description, weights)


def read_description(folder: Path) -> dict[str, Any]:
    """Return the content of bundle.json after a check of every entry."""
    path = folder / DESCRIPTION
    content = read_file(path, LARGEST_DESCRIPTION)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); export the policy again") from error
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise InputError(f"{path} does not describe a policy; export it again")
    if found["format"] != FORMAT:
        raise InputError(f"{path} has format {found['format']}; this version reads {FORMAT}: reinstall drol-runtime")
    try:
        intact = found.get("sha256") == digest(found)
        if intact:
            check_description(found)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} does not describe a policy ({error!r}); export it again") from error
    if not intact:
        raise InputError(f"{path} does not match its checksum; export the policy again")
    return found


def digest(description: dict[str, Any]) -> str:
    """Return the checksum of all entries except the checksum itself."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_description(found: dict[str, Any]) -> None:
    """Raise `ValueError` or another built-in exception for an invalid description."""
    for name in ("observation", "action"):
        part = found[name]
        size = whole(part["size"], 1, LARGEST_SIZE, f"size of the {name}")
        low, high = numbers(part["low"], size), numbers(part["high"], size)
        if any(below > above for below, above in zip(low, high)):
            raise ValueError(f"low of the {name} is above high")
        for words in ("names", "units", "frames"):
            texts = part.get(words)  # the oldest bundles have no frames
            if texts is not None and not is_list_of(texts, str, size):
                raise ValueError(f"{words} of the {name}")
        if part["names"] is not None and len(set(part["names"])) != size:
            raise ValueError(f"names of the {name} are not all different")
    sampler = found["sampler"]
    if sampler["prior"] not in PRIORS or sampler["aggregation"] not in ("mean", "min"):
        raise ValueError("prior or aggregation")
    best_of = whole(sampler["best_of"], 1, LARGEST_BEST_OF, "best_of")
    if best_of > 1 and (sampler["critics"] is None or sampler["prior"] == "none"):
        raise ValueError("best_of needs critics and latents")
    for shape in [*sampler["networks"].values(), *([sampler["critics"]] if sampler["critics"] else [])]:
        whole(shape["layers"], 1, LARGEST_LAYERS, "layers")
        whole(shape["members"], 1, LARGEST_LAYERS, "members")
        if type(shape["layer_norm"]) is not bool:
            raise ValueError("layer_norm")
    check_steps(sampler["steps"], sampler["networks"])
    numbers(sampler["critic_conditions"])
    rate = found.get("control_rate")
    if rate is not None and numbers([rate])[0] <= 0:
        raise ValueError("control_rate is not positive")
    if not isinstance(found["files"], dict) or not {WEIGHTS, TESTS} <= set(found["files"]):
        raise ValueError("files")
    for sum_ in found["files"].values():
        if not isinstance(sum_, str) or not re.fullmatch("[0-9a-f]{64}", sum_):
            raise ValueError("checksum")


def check_steps(steps: Any, networks: dict[str, Any]) -> None:
    """Raise `ValueError` for invalid steps."""
    if not isinstance(steps, list) or not 1 <= len(steps) <= 4096 or all(step in SQUASHES for step in steps):
        raise ValueError("steps")
    for step in steps:
        if isinstance(step, dict):
            if step["network"] not in networks or type(step["sees_action"]) is not bool:
                raise ValueError("network of a step")
            numbers(step["conditions"])
            numbers([] if step["scale"] is None else [step["scale"]])
        elif step not in SQUASHES:
            raise ValueError("step")


def check_weights(path: Path, description: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    """Raise `InputError` unless the arrays match the description exactly and are finite."""
    observation, action = description["observation"]["size"], description["action"]["size"]
    sampler = description["sampler"]
    expected: dict[str, tuple[int, ...]] = {f"observation/{name}": (observation,) for name in ("mean", "deviation")}
    widths = {}  # input width of each network; all steps with a network must agree
    for step in sampler["steps"]:
        if isinstance(step, dict):
            width = observation + step["sees_action"] * action + len(step["conditions"])
            if widths.setdefault(step["network"], width) != width:
                raise InputError(
                    f"{path}: two sampler steps give network {step['network']} inputs of different sizes; "
                    "export the policy again"
                )
    for name, shape in sampler["networks"].items():
        expected.update(expected_arrays(path, weights, name, shape, widths.get(name, -1), action))
    if sampler["critics"]:
        width = observation + action + len(sampler["critic_conditions"])
        expected.update(expected_arrays(path, weights, "critics", sampler["critics"], width, 1))
    for name in sorted(set(expected) ^ set(weights)):
        raise InputError(f"{path}: the array {name[:80]} is only on one side; export the policy again")
    for name, array in weights.items():
        if array.shape != expected[name] or array.dtype != np.float32:
            shape = list(expected[name])
            raise InputError(f"{path}: {name} is {array.dtype}{list(array.shape)} where {shape} of float32 is right")
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {name} has numbers that are not finite; export another policy")
    if not (weights["observation/deviation"] > 0).all():
        raise InputError(f"{path}: observation/deviation must be positive; export the policy again")


def expected_arrays(
    path: Path, weights: dict[str, np.ndarray], name: str, shape: dict[str, Any], width: int, out: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of a network; the biases give the widths of the hidden layers."""
    members, layers, expected = shape["members"], shape["layers"], {}
    for layer in range(layers):
        bias = weights.get(f"{name}/{layer}/bias")
        if bias is None or bias.ndim != 2:
            raise InputError(f"{path}: the array {name}/{layer}/bias is missing or has no shape [members, width]")
        after = out if layer == layers - 1 else bias.shape[1]
        expected[f"{name}/{layer}/kernel"] = (members, width, after)
        expected[f"{name}/{layer}/bias"] = (members, after)
        if shape["layer_norm"] and layer < layers - 1:
            expected[f"{name}/{layer}/norm_scale"] = expected[f"{name}/{layer}/norm_bias"] = (members, after)
        width = after
    return expected


def read_arrays(folder: Path, name: str, sums: dict[str, str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file after a check of its checksum."""
    path = folder / name
    content = read_file(path, None)
    if hashlib.sha256(content).hexdigest() != sums[name]:
        raise InputError(f"{path} does not match its checksum; export the policy again")
    try:
        return parse_arrays(content)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise InputError(f"{path} holds no arrays ({error}); export the policy again") from error


def parse_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Parse a file in the safetensors format: the length of the JSON header, the header, the numbers."""
    if len(content) < 8:
        raise ValueError("the file is too short")
    start = 8 + int.from_bytes(content[:8], "little")
    if start > len(content):
        raise ValueError("the header is longer than the file")
    header = json.loads(content[8:start])
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise ValueError(f"{name[:80]} has the type {entry['dtype']!r}")
        shape = tuple(whole(size, 0, LARGEST_SIZE, name) for size in entry["shape"])
        begin, end = (whole(place, 0, len(content), name) for place in entry["data_offsets"])
        if end - begin != 4 * math.prod(shape) or start + end > len(content):
            raise ValueError(f"{name[:80]} has not as many bytes as its shape needs")
        numbers_ = np.frombuffer(content, "<f4", (end - begin) // 4, start + begin)
        arrays[name] = numbers_.reshape(shape).astype(np.float32)
    return arrays


def read_file(path: Path, limit: int | None) -> bytes:
    """Return the bytes of a regular file; reject links, and files larger than the limit."""
    if path.is_symlink() or not path.is_file():
        raise InputError(f"{path} is missing or no plain file; give the folder that `drol export` wrote")
    if limit is not None and path.stat().st_size > limit:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes; no description is so long")
    return path.read_bytes()


def whole(value: Any, low: int, high: int, what: str) -> int:
    """Return an integer; raise `ValueError` if it is not one, or not within the bounds."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{what[:80]} is {str(value)[:40]}, which is no whole number from {low} to {high}")
    return value


def numbers(values: Any, size: int | None = None) -> list[float]:
    """Return a list of finite numbers; raise `ValueError` for other values, or another length than `size`."""
    if not isinstance(values, list) or (size is not None and len(values) != size):
        raise ValueError(f"a list of {size or 'some'} numbers is expected")
    if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise ValueError("a list has values that are not finite numbers")
    return values


def is_list_of(values: Any, kind: type, size: int) -> bool:
    return isinstance(values, list) and len(values) == size and all(isinstance(value, kind) for value in values)
