"""Read, check and write expert policies: networks of dense layers in NumPy, loaded without unpickling.

A policy is a folder with `policy.npz` (kernel_0 [in, out], bias_0, kernel_1, ... and optionally input_shift,
input_scale, output_shift, output_scale, log_std) and `policy.json`:

    {"format": "drol-policy", "version": 1, "network": {"kind": "mlp", "activation": "relu", "output": "tanh"},
     "input": "ogbench-direction", "direction_scale": 10.0}

action = output(mlp((input - input_shift) / input_scale)) * output_scale + output_shift

A sampled action is action + exp(log_std) * normal.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from drol.data.readers.npz import list_names, open_npz, read_npz
from drol.decoding import Finite, read_json
from drol.errors import InputError
from drol.storage import replace_folder, write_synced

FORMAT, VERSION = "drol-policy", 1
ARRAYS, HEADER = "policy.npz", "policy.json"
INPUTS = {
    "observation": "the observation of the task",
    "ogbench-direction": "the observation without the position (x, y), then a direction of length direction_scale",
}
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
OUTPUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tanh": np.tanh, "none": lambda x: x}
SCALES = ("input_shift", "input_scale", "output_shift", "output_scale", "log_std")


@dataclass(frozen=True)
class NetworkEntry:
    """The network in `policy.json`."""

    kind: Literal["mlp"]
    activation: Literal["relu", "tanh", "gelu", "silu"]
    output: Literal["tanh", "none"]


@dataclass(frozen=True)
class Header:
    """The content of `policy.json`."""

    format: Literal["drol-policy"]
    version: Literal[1]
    network: NetworkEntry
    input: Literal["observation", "ogbench-direction"]
    direction_scale: Finite = 1.0


@dataclass(frozen=True)
class Expert:
    """A policy: the network that computes its action, and optionally the standard deviation of sampled actions."""

    kernels: tuple[np.ndarray, ...]  # [in, out] each
    biases: tuple[np.ndarray, ...]
    activation: str
    output: str
    input: str
    direction_scale: float = 1.0
    scales: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def input_size(self) -> int:
        return self.kernels[0].shape[0]

    @property
    def action_size(self) -> int:
        return self.kernels[-1].shape[1]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the action for an input of the network."""
        scales = self.scales
        hidden = np.asarray(values, np.float32)
        if "input_shift" in scales:
            hidden = hidden - scales["input_shift"]
        if "input_scale" in scales:
            hidden = hidden / scales["input_scale"]
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            hidden = ACTIVATIONS[self.activation](hidden @ kernel + bias)
        action = OUTPUTS[self.output](hidden @ self.kernels[-1] + self.biases[-1])
        if "output_scale" in scales:
            action = action * scales["output_scale"]
        return action + scales["output_shift"] if "output_shift" in scales else action

    def draw(self, values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Sample an action with the policy's noise; without `log_std`, return the deterministic action."""
        action = self(values)
        if "log_std" not in self.scales:
            return action
        return action + np.exp(self.scales["log_std"]) * generator.normal(size=action.shape)

    def walking_action(self, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the action with which a body goes in a direction; its state starts with its position."""
        if self.input == "observation":
            return self(state)
        return self(np.concatenate([state[2:], self.direction_scale * direction]))

    def header(self) -> dict[str, Any]:
        """Return the content of `policy.json`."""
        network = {"kind": "mlp", "activation": self.activation, "output": self.output}
        header = {"format": FORMAT, "version": VERSION, "network": network, "input": self.input}
        return header | ({"direction_scale": self.direction_scale} if self.input == "ogbench-direction" else {})

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of `policy.npz`."""
        layers = enumerate(zip(self.kernels, self.biases, strict=True))
        named = {
            f"{kind}_{n}": each for n, layer in layers for kind, each in zip(("kernel", "bias"), layer, strict=True)
        }
        return named | dict(self.scales)

    def digest(self) -> str:
        """Return a checksum of the policy."""
        digest = hashlib.sha256(json.dumps(self.header(), sort_keys=True).encode())
        for name, array in sorted(self.arrays().items()):
            digest.update(f"{name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def read_expert(path: Path) -> Expert:
    """Read the policy of a folder; `path` may also be its policy.npz or policy.json."""
    folder = path.parent if path.name in (ARRAYS, HEADER) else path
    if not (folder / HEADER).is_file() or not (folder / ARRAYS).is_file():
        raise InputError(
            f"the expert {path} is not a folder with {ARRAYS} and {HEADER}; "
            "`drol data expert FILE.npz --out FOLDER` makes one from a file of weights"
        )
    where = folder / HEADER
    header: Header = read_json(where, Header, extra=True)
    return make_expert(
        read_arrays(folder / ARRAYS),
        activation=header.network.activation,
        output=header.network.output,
        input=header.input,
        direction_scale=header.direction_scale,
        where=str(folder / ARRAYS),
    )


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an npz file, in the order of the file."""
    with open_npz(path, ()) as archive:
        names = list_names(archive)
    return read_npz(path, names)


def make_expert(
    arrays: Mapping[str, np.ndarray], *, activation: str, output: str, input: str, direction_scale: float, where: str
) -> Expert:
    """Make a policy from arrays; raise `InputError` if names, shapes or values are invalid."""
    number = max(1, sum(name.startswith("kernel_") for name in arrays))
    layers = {f"{kind}_{layer}" for layer in range(number) for kind in ("kernel", "bias")}
    odd = sorted((layers - arrays.keys()) | (arrays.keys() - layers - set(SCALES)))
    if odd:
        raise InputError(
            f"{where} must hold kernel_0, bias_0, kernel_1, ... and perhaps {', '.join(SCALES)}; "
            f"{', '.join(odd)} is missing or not one of them"
        )
    size = arrays["kernel_0"].shape[0] if arrays["kernel_0"].ndim == 2 else 0
    first = size
    for layer in range(number):
        kernel, bias = arrays[f"kernel_{layer}"], arrays[f"bias_{layer}"]
        if kernel.ndim != 2 or kernel.shape[0] != size or 0 in kernel.shape or bias.shape != kernel.shape[1:]:
            raise InputError(
                f"layer {layer} of {where} has a kernel {list(kernel.shape)} and a bias {list(bias.shape)}; "
                f"they must be [{size or 'in'}, out] and [out]"
            )
        size = kernel.shape[1]
    sizes = {"input_shift": first, "input_scale": first, "output_shift": size, "output_scale": size, "log_std": size}
    for name, array in arrays.items():
        if name in sizes and array.shape != (sizes[name],):
            raise InputError(f"{name} of {where} is {list(array.shape)}; it must be [{sizes[name]}]")
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise InputError(f"{name} of {where} must be floating-point numbers, all finite")
    if "input_scale" in arrays and (arrays["input_scale"] == 0).any():
        raise InputError(f"input_scale of {where} has zeros; the input is divided by it")
    exact = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    return Expert(
        kernels=tuple(exact[f"kernel_{layer}"] for layer in range(number)),
        biases=tuple(exact[f"bias_{layer}"] for layer in range(number)),
        activation=activation,
        output=output,
        input=input,
        direction_scale=direction_scale,
        scales={name: exact[name] for name in SCALES if name in exact},
    )


def save_expert(expert: Expert, folder: Path, training: Mapping[str, Any] | None = None) -> None:
    """Write a policy folder; raise an error if it exists.

    Args:
        expert: The policy.
        folder: The folder to write.
        training: How the policy was trained; `policy.json` records it under "training" and nothing reads it.
    """
    if folder.exists():
        raise InputError(f"{folder} exists already; choose another --out, nothing was written")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    buffer = io.BytesIO()
    np.savez(buffer, **expert.arrays())  # pyright: ignore[reportArgumentType]
    write_synced(partial / ARRAYS, buffer.getvalue())
    header = expert.header() | ({"training": dict(training)} if training else {})
    write_synced(partial / HEADER, (json.dumps(header, indent=2) + "\n").encode())
    replace_folder(partial, folder)


OTHER_NAMES = {
    "in_shift": "input_shift",
    "in_scale": "input_scale",
    "out_shift": "output_shift",
    "out_scale": "output_scale",
}


def expert_of_weights(path: Path, *, activation: str, output: str, input: str, direction_scale: float = 1.0) -> Expert:
    """Read a policy from an npz file with other array names; see `rename_layers`."""
    return make_expert(
        rename_layers(read_arrays(path)),
        activation=activation,
        output=output,
        input=input,
        direction_scale=direction_scale,
        where=str(path),
    )


def rename_layers(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rename arrays `<layer>/kernel` and `<layer>/bias` to the names of our format, in the order of the file.

    Layers that compute a standard deviation (log_std/...) are dropped; a constant one (log_std) is kept.
    """
    layers = [name.removesuffix("kernel") for name in arrays if name.endswith("/kernel") and "log_std" not in name]
    named = {}
    for number, layer in enumerate(layers):
        for kind in ("kernel", "bias"):
            if f"{layer}{kind}" in arrays:
                named[f"{kind}_{number}"] = arrays[f"{layer}{kind}"]
    return named | {OTHER_NAMES.get(name, name): array for name, array in arrays.items() if "/" not in name}
