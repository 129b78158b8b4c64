"""Measure the share of each operation in the time of one update: taskset -c 0 python benchmarks/profile_update.py

Run it on one core: the profiler then sees one operation after the other, and the shares add up.
"""

import argparse
import collections
import gzip
import json
import re
import tempfile
from pathlib import Path

import jax

from drol.algorithms.drol import DROL
from drol.compiling import compiler_options
from drol.data.random_dataset import random_dataset
from drol.training.compiled import init_seeds, seed_keys, train_chunk, zero_totals

UPDATES = 5
OPERATION = re.compile(r"%?([\w.-]+) = \(?\w+\[([\d,]*)\][^ ]* (\w[\w-]*)\((.*)")


def kind_of(name: str, shape: tuple[int, ...], opcode: str, rest: str, candidates: int) -> str:
    """Return the type of an operation of the compiled loop, derived from its shapes."""
    rows = 256 * candidates
    if opcode == "dot":
        if rows in shape or shape[:2] == (256, candidates):
            return "products: candidates"
        if 256 not in shape:
            return "products: gradients of weights"
        return "products: gradients of inputs" if "transpose(jvp" in rest else "products: forward"
    if opcode in ("copy", "bitcast", "tuple", "get-tuple-element") or name.startswith("copy"):
        return "copies"
    if opcode in ("reduce", "reduce-window") or "reduce" in name:
        return "sums: LayerNorm, biases, losses"
    if rows in shape or (len(shape) == 3 and shape[:2] == (256, candidates)):
        return "element-wise: GELU and bias of candidates"
    if 256 in shape:
        return "element-wise: GELU, LayerNorm, forward and backward"
    if 512 in shape:
        return "element-wise: Adam, target"
    return "the rest: draws, gathers, scalars"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=16, help="K (default: 16)")
    parsed = parser.parse_args()
    algorithm = DROL(num_candidates=parsed.candidates)
    dataset, keys = random_dataset(), seed_keys((0,))
    states = init_seeds(algorithm, keys, dataset.spec)
    carry = states, zero_totals(algorithm, states, dataset, keys)

    def chunk(states, totals, dataset, keys):
        return train_chunk.__wrapped__(algorithm, states, totals, dataset, keys, 1, UPDATES)

    program = jax.jit(chunk, compiler_options=compiler_options()).lower(*carry, dataset, keys).compile()
    kinds = {
        name: kind_of(name, tuple(int(size) for size in shape.split(",") if size), opcode, rest, parsed.candidates)
        for name, shape, opcode, rest in OPERATION.findall(program.as_text())
    }
    jax.block_until_ready(program(*carry, dataset, keys))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            jax.block_until_ready(program(*carry, dataset, keys))
        trace = next(Path(folder).rglob("perfetto_trace.json.gz"))
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    milliseconds = collections.Counter()
    for event in events:
        if event.get("ph") == "X" and event["name"] in kinds and not event["name"].startswith("while"):
            milliseconds[kinds[event["name"]]] += event["dur"] / 1e3 / UPDATES
    total = sum(milliseconds.values())
    print(f"{total:.0f} ms an update, DROL({parsed.candidates})")
    for kind, each in sorted(milliseconds.items()):
        print(f"{kind:52s} {each:7.1f} ms {each / total:6.1%}")


if __name__ == "__main__":
    main()
