"""Random expert policies without training."""

from itertools import pairwise

import numpy as np

from drol_reproduction.experts.expert import Expert, make_expert


def random_arrays(sizes, seed: int = 0) -> dict[str, np.ndarray]:
    """Return the arrays of layers of these sizes."""
    generator = np.random.default_rng(seed)
    arrays = {}
    for layer, shape in enumerate(pairwise(sizes)):
        arrays[f"kernel_{layer}"] = generator.normal(size=shape).astype(np.float32) / np.sqrt(shape[0])
        arrays[f"bias_{layer}"] = generator.normal(size=shape[1]).astype(np.float32) / 10
    return arrays


def random_expert(sizes=(29, 8), seed: int = 0, more=None, **settings) -> Expert:
    """Return a policy with layers of these sizes; `more` are further arrays, such as log_std."""
    defaults = {"activation": "relu", "output": "tanh", "input": "ogbench-direction", "direction_scale": 1.0}
    return make_expert(random_arrays(sizes, seed) | (more or {}), **(defaults | settings), where="random")
