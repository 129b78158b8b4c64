"""Run an exported policy in onnxruntime; the caller draws the latents.

drol export runs/demo --out bundle --onnx
python examples/control_loop_onnx.py bundle --steps 1000
"""

import argparse
import time
from pathlib import Path

import drol_runtime
import numpy as np
import onnxruntime


def open_session(bundle: str) -> onnxruntime.InferenceSession:
    """Return a session with one thread, because a policy is too small for several."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(Path(bundle) / "policy.onnx"), options, providers=["CPUExecutionProvider"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()
    session, bundle = open_session(arguments.bundle), drol_runtime.read_bundle(arguments.bundle)
    tests = bundle.tests()
    found = session.run(["action"], {name: tests[name] for name in ("observation", "latent")})[0]
    print(f"largest difference to the trained policy: {np.abs(found - tests['action']).max():.1e}")
    policy = drol_runtime.Policy(bundle)  # draws the latents
    observation, seconds = tests["observation"][:1], []
    for _ in range(arguments.steps):
        started = time.perf_counter()
        session.run(["action"], {"observation": observation, "latent": policy.latents(1)})
        seconds.append(time.perf_counter() - started)
    print(f"p50 {1e6 * np.percentile(seconds, 50):.0f} us, p99 {1e6 * np.percentile(seconds, 99):.0f} us")


if __name__ == "__main__":
    main()
