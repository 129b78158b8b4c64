"""Write a policy as ONNX; it maps a batch of observations and latents, of any size, to actions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError
from drol.export.bundle import Example
from drol.networks.mlp import MLP
from drol.networks.sampler import CLIP, Call
from drol.policy import Policy
from drol.storage import write_synced

FILE = "policy.onnx"
OPSET, IR_VERSION = 20, 10  # the first opset with GELU; the IR version that onnxruntime reads since 1.18


def write(folder: Path, policy: Policy, example: Example) -> None:
    """Write the policy; the latents are an input, so the caller draws them."""
    onnx = import_onnx()
    graph = Graph(onnx)
    sampler = policy.algorithm.sampler(policy.networks)
    count, size = example.best_of, sampler.action_size
    mean, deviation = (np.asarray(getattr(policy.standardisation, name)) for name in ("mean", "deviation"))
    state = graph.add("Div", graph.add("Sub", "observation", mean), deviation)  # [batch, observation]
    rows = graph.add("Reshape", graph.add("Tile", state, np.asarray([1, count])), np.asarray([-1, len(mean)]))
    x = graph.add("Reshape", "latent", np.asarray([-1, size]))  # [batch * best_of, action]
    for step in sampler.steps:
        if isinstance(step, Call):
            seen = [rows, *([x] if step.sees_action else [])]
            output = graph.network(graph.with_constants(seen, step.conditions), sampler.networks[step.network])
            x = output if step.scale is None else graph.add("Add", x, graph.add("Mul", output, np.float32(step.scale)))
        else:
            x = graph.add("Clip", x, np.float32(-1), np.float32(1)) if step == CLIP else graph.add("Tanh", x)
    if count > 1 and sampler.critics is not None:
        seen = graph.with_constants([rows, x], sampler.critic_conditions)
        members = [member_of(sampler.critics, number) for number in range(len(sampler.critics.layers[0].bias))]
        value = graph.add("Min" if sampler.aggregation == "min" else "Mean", *(graph.network(seen, m) for m in members))
        best = graph.add("ArgMax", graph.add("Reshape", value, np.asarray([-1, count])), axis=1, keepdims=1)
        draws = graph.add("Reshape", x, np.asarray([-1, count, size]))
        x = graph.add("GatherND", draws, best, batch_dims=1)
    box = policy.action_box
    half, centre = (np.ones(size), np.zeros(size)) if box is None else (box.half, box.centre)
    graph.add("Add", graph.add("Mul", x, np.float32(half)), np.float32(centre), output="action")
    named = {"observation": policy.observation_dimensions, "action": policy.action_dimensions}
    texts = {f"{what}_{kind}": json.dumps(each) for what in named if (found := named[what])
             for kind, each in found.to_dict().items() if each}  # fmt: skip
    content = graph.serialise({"observation": (len(mean),), "latent": (count, size)}, (size,), texts)
    write_synced(folder / FILE, content)


def load(folder: Path) -> Callable[..., np.ndarray]:
    """Return the written policy as a function of observations and latents."""
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise missing(error) from error
    session = onnxruntime.InferenceSession(str(folder / FILE), providers=["CPUExecutionProvider"])
    return lambda observation, latent: np.asarray(
        session.run(["action"], {"observation": observation, "latent": latent})[0]
    )


def import_onnx() -> Any:
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise missing(error) from error
    return onnx


def missing(error: ModuleNotFoundError) -> InputError:
    return InputError(f"ONNX needs {error.name}; install it with: pip install 'drol[onnx]'")


def member_of(stacked: MLP, number: int) -> MLP:
    """Return one network of an ensemble."""
    import jax

    return jax.tree.map(lambda array: array[number], stacked)


class Graph:
    """Nodes and constants of an ONNX graph, in the order in which they were added."""

    def __init__(self, onnx: Any):
        self.onnx, self.nodes, self.constants = onnx, [], []

    def add(self, kind: str, *inputs: str | np.ndarray | np.generic, output: str | None = None, **attributes) -> str:
        """Add a node and return the name of its output.

        An input is the name of an output, or an array, which becomes a constant: int64 for integers, else float32.
        """
        name = output or f"v{len(self.nodes)}"
        names = [each if isinstance(each, str) else self.constant(np.asarray(each)) for each in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [name], **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        typed = values.astype(np.int64 if values.dtype.kind in "iu" else np.float32)
        self.constants.append(self.onnx.numpy_helper.from_array(typed, name))
        return name

    def with_constants(self, seen: list[str], conditions: tuple[float, ...]) -> str:
        """Concatenate columns, followed by conditions that are the same in every row."""
        if conditions:
            rows = self.add("Gather", self.add("Shape", seen[0]), np.asarray([0]), axis=0)
            shape = self.add("Concat", rows, np.asarray([len(conditions)]), axis=0)
            seen = [*seen, self.add("Expand", np.asarray(conditions, np.float32), shape)]
        return self.add("Concat", *seen, axis=1) if len(seen) > 1 else seen[0]

    def network(self, x: str, network: MLP) -> str:
        """Add the layers of a network and return its output [rows, out]."""
        for number, layer in enumerate(network.layers):
            x = self.add("Gemm", x, np.asarray(layer.kernel), np.asarray(layer.bias))
            if number < len(network.layers) - 1:
                x = self.add("Gelu", x, approximate="tanh")
                if network.norms:
                    scale, bias = (np.asarray(getattr(network.norms[number], name)) for name in ("scale", "bias"))
                    x = self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-6)
        return x

    def serialise(self, inputs: dict[str, tuple[int, ...]], output: tuple[int, ...], texts: dict[str, str]) -> bytes:
        """Check the graph and return the bytes of the file; the first axis of inputs and output is the batch.

        `texts`, such as the names of dimensions, are stored in the metadata of the model.
        """
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        made = helper.make_graph(
            self.nodes,
            "policy",
            [helper.make_tensor_value_info(name, kind, ["batch", *shape]) for name, shape in inputs.items()],
            [helper.make_tensor_value_info("action", kind, ["batch", *output])],
            self.constants,
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        model.producer_name = "drol"
        helper.set_model_props(model, texts)
        self.onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()
