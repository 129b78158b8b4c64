"""Write a bundle: weights, a JSON description of the policy, and test data. `drol_runtime.bundle` reads it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from drol_runtime.bundle import DESCRIPTION, FORMAT, TESTS, WEIGHTS, digest

from drol import __version__
from drol.algorithms import algorithm_name
from drol.data.dimensions import Dimensions
from drol.data.trajectories import spread
from drol.networks.mlp import MLP
from drol.networks.sampler import Sampler
from drol.policy import Policy
from drol.runs.run import Run
from drol.storage import write_synced

RANGE_ROWS = 200_000  # maximum number of evenly spread rows of the data from which the observation range is computed


@dataclass(frozen=True)
class Example:
    """Observations of the data, latents, and the actions of the trained policy, in the units of the data."""

    observation: np.ndarray  # [rows, observation]
    latent: np.ndarray  # [rows, best_of, action]
    action: np.ndarray  # [rows, action]

    @property
    def best_of(self) -> int:
        return self.latent.shape[1]


def write_bundle(folder: Path, run: Run, policy: Policy, example: Example, step: int, seed: int | None) -> None:
    """Write the files of a bundle into a folder; other files in the folder get a checksum too."""
    sampler = policy.algorithm.sampler(policy.networks)
    chosen = example.best_of > 1
    arrays = {
        "observation/mean": np.asarray(policy.standardisation.mean, np.float32),
        "observation/deviation": np.asarray(policy.standardisation.deviation, np.float32),
    }
    for name, network in sampler.networks.items():
        arrays |= network_arrays(name, network, stacked=False)
    if chosen and sampler.critics is not None:
        arrays |= network_arrays("critics", sampler.critics, stacked=True)
    tests = {"observation": example.observation, "latent": example.latent, "action": example.action}
    write_synced(folder / WEIGHTS, safetensors.numpy.save(arrays))
    write_synced(folder / TESTS, safetensors.numpy.save(tests))
    files = sorted(path for path in folder.iterdir() if path.name != DESCRIPTION)
    description = {
        "format": FORMAT,
        "made_by": f"drol {__version__}",
        "algorithm": algorithm_name(policy.algorithm),
        "settings": policy.algorithm.to_dict(),
        "task": run.config.task,
        "run": run.path.absolute().name,
        "step": step,
        "seed": run.config.seeds[0] if seed is None else seed,
        "dataset_fingerprint": run.directory.read_config().get("dataset_fingerprint", ""),
        "control_rate": run.task.control_rate,
        "observation": observation_entry(run, policy),
        "action": action_entry(policy, sampler.action_size),
        "sampler": sampler_entry(sampler, example.best_of),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
    description = json.loads(json.dumps(description))  # tuples become lists, as in the file
    description["sha256"] = digest(description)
    write_synced(folder / DESCRIPTION, json.dumps(description, indent=1).encode())


def network_arrays(name: str, network: MLP, stacked: bool) -> dict[str, np.ndarray]:
    """Return the arrays of a network by name; the first axis of each is the ensemble."""

    def array(values: Any) -> np.ndarray:
        found = np.asarray(values, np.float32)
        return np.ascontiguousarray(found if stacked else found[None])

    arrays = {}
    for number, layer in enumerate(network.layers):
        arrays |= {f"{name}/{number}/kernel": array(layer.kernel), f"{name}/{number}/bias": array(layer.bias)}
    for number, norm in enumerate(network.norms):
        arrays |= {f"{name}/{number}/norm_scale": array(norm.scale), f"{name}/{number}/norm_bias": array(norm.bias)}
    return arrays


def observation_entry(run: Run, policy: Policy) -> dict[str, Any]:
    """Describe the observations: their size, their names, and their range in the data."""
    data = run.task.train
    rows = np.asarray(data.take(jnp.asarray(spread(data.size, RANGE_ROWS))).observation, np.float64)
    return entry(rows.shape[1], rows.min(0), rows.max(0), policy.observation_dimensions)


def action_entry(policy: Policy, size: int) -> dict[str, Any]:
    """Describe the actions: their size, their names, and the action bounds of the data, in its units."""
    box = policy.action_box
    low, high = ([-1.0] * size, [1.0] * size) if box is None else (box.low, box.high)
    return entry(size, low, high, policy.action_dimensions)


def entry(size: int, low: Iterable[float], high: Iterable[float], dimensions: Dimensions | None) -> dict[str, Any]:
    texts = dimensions.to_dict() if dimensions else {}
    named = {what: texts.get(what) or None for what in ("names", "units", "frames")}
    return {"size": size, **named, "low": list(map(float, low)), "high": list(map(float, high))}


def sampler_entry(sampler: Sampler, best_of: int) -> dict[str, Any]:
    """Describe the computation of an action, as in `drol.networks.sampler`."""

    def shape(network: MLP, members: int = 1) -> Mapping[str, Any]:
        return {"layers": len(network.layers), "members": members, "layer_norm": bool(network.norms)}

    critics = sampler.critics if best_of > 1 else None
    return {
        "prior": sampler.prior,
        "best_of": best_of,
        "steps": [step if isinstance(step, str) else asdict(step) for step in sampler.steps],
        "networks": {name: shape(network) for name, network in sampler.networks.items()},
        "critics": critics and shape(critics, len(critics.layers[0].bias)),
        "critic_conditions": list(sampler.critic_conditions),
        "aggregation": sampler.aggregation,
    }
