"""Time one action on one core: the network's bare matrix products, drol_runtime, onnxruntime, jax and a server.

    taskset -c 0 python benchmarks/acting.py --json results/acting.json --document docs/deploy.md

The benchmark makes a run of the paper's size (four layers of 512) with untrained networks, exports it and times it.
All candidates take turns in one loop, so that other load on the machine affects all of them.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import drol_runtime
import jax
import numpy as np

import drol
from drol.checkpoints import step_name
from drol.data.standardisation import Standardisation
from drol.export.export import export_policy
from drol.policy import save_policies
from drol.runs.directory import RunDirectory
from drol_reproduction.documents import fill_document
from drol_reproduction.propositions.proposition_tables import markdown

OBSERVATIONS, ACTIONS = 29, 8  # sizes of the ant's observation and action
STRETCH = 1024  # calls of a candidate in one turn, so that few calls find another candidate's networks in the cache
SERVER_COLUMNS = {
    "clients": "d", "requests_per_second": ",.0f", "p50_ms": ".1f", "p99_ms": ".1f", "refused": "d",
}  # fmt: skip


def made_run(folder: Path) -> drol.Run:
    """Make a run on random data; its policy has the paper's size."""
    generator = np.random.default_rng(0)
    rows = 2000
    dataset = drol.Dataset.from_rows(
        observation=generator.normal(size=(rows, OBSERVATIONS)),
        action=generator.uniform(-0.9, 0.9, (rows, ACTIONS)),
        reward=np.zeros(rows),
        continues=np.ones(rows),
        last=np.arange(rows) % 100 == 99,
    )
    algorithm = drol.DROL()
    config = drol.RunConfig(algorithm=algorithm, task="random", steps=1)
    directory = RunDirectory(folder)
    folder.mkdir()
    directory.write_config({"run": config.to_dict(), "dataset_fingerprint": dataset.fingerprint(), "circumstances": {}})
    networks = jax.vmap(lambda key: algorithm.init(key, dataset.spec).policy)(jax.random.split(jax.random.key(0), 1))
    tree = (networks, Standardisation.identity(dataset.spec))
    save_policies(directory.policies / step_name(1), algorithm, tree, dataset.spec, (0,))
    return drol.open_run(folder, task=drol.task_from(dataset, "random"))


def product_chain(bundle: Path):
    """Return a function with only the network's matrix products, into buffers: the lower bound for a NumPy policy."""
    weights = drol_runtime.read_bundle(bundle).weights
    kernels = [weights[f"actor/{layer}/kernel"][0] for layer in range(5)]
    buffers = [np.zeros((1, kernel.shape[1]), np.float32) for kernel in kernels]
    start = np.ones((1, len(kernels[0])), np.float32)

    def run(_):
        x = start
        for kernel, buffer in zip(kernels, buffers, strict=True):
            x = np.dot(x, kernel, out=buffer)

    return run


def candidates(run: drol.Run, bundle: Path):
    """Return the ways to act, each a function of one observation."""
    import onnxruntime

    robot, out = drol_runtime.load(bundle, seed=0), np.zeros(ACTIONS, np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(bundle / "policy.onnx"), options, providers=["CPUExecutionProvider"])

    def by_onnx(observation):
        session.run(["action"], {"observation": observation[None], "latent": robot.latents(1)})

    return {
        "NumPy products alone": product_chain(bundle),
        "drol_runtime": lambda observation: robot.act(observation, out=out),
        "onnxruntime": by_onnx,
        "for_control (jax)": run.policy().for_control(seed=0),
    }


def measure_latency(ways, calls: int):
    """Return percentiles 50 and 99 of each way's time in microseconds; the ways take turns in short stretches."""
    generator = np.random.default_rng(1)
    observations = generator.normal(size=(STRETCH, OBSERVATIONS)).astype(np.float32)
    times = {name: [] for name in ways}
    for _ in range(max(1, calls // STRETCH)):
        for name, act in ways.items():
            for observation in observations:
                started = time.perf_counter_ns()
                act(observation)
                times[name].append(time.perf_counter_ns() - started)
    return {
        name: {
            "p50": float(np.percentile(own[STRETCH:], 50)) / 1e3,
            "p99": float(np.percentile(own[STRETCH:], 99)) / 1e3,
        }
        for name, own in times.items()
    }


def measure_server(bundle: Path, clients: int, seconds: float):
    """Return the requests per second and their latency; `clients` local clients send requests without pause."""
    command = [sys.executable, "-m", "drol_runtime.serve", str(bundle), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline().partition(";")[0].rpartition(":")[2])
    body = json.dumps({"observation": [0.1] * OBSERVATIONS})
    taken, refused, end = [], [], time.perf_counter() + seconds

    def client():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.perf_counter() < end:
            started = time.perf_counter()
            connection.request("POST", "/act", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            (taken if answer.status == 200 else refused).append(time.perf_counter() - started)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.terminate()
    server.communicate()
    return {
        "clients": clients,
        "requests_per_second": len(taken) / seconds,
        "p50_ms": 1e3 * float(np.percentile(taken, 50)),
        "p99_ms": 1e3 * float(np.percentile(taken, 99)),
        "refused": len(refused),
    }


def tables(found) -> str:
    """Return the tables of docs/deploy.md."""
    bare = found["action_us"]["NumPy products alone"]["p50"]
    rows = [
        (name, f"{own['p50']:.0f}", f"{own['p99']:.0f}", f"{own['p50'] / bare:.1f}")
        for name, own in found["action_us"].items()
    ]
    first = markdown(("one action", "p50 (us)", "p99 (us)", "p50 over the products alone"), rows)
    if "server" not in found:
        return f"{first}\n\nA bundle loads in {found['load_ms']:.0f} ms."
    server = [tuple(f"{each[name]:{form}}" for name, form in SERVER_COLUMNS.items()) for each in found["server"]]
    second = markdown(tuple(name.replace("_", " ") for name in SERVER_COLUMNS), server)
    between = f"A bundle loads in {found['load_ms']:.0f} ms. `drol serve`, clients and server on one core:"
    return f"{first}\n\n{between}\n\n{second}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--document", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run, bundle = made_run(Path(name) / "run"), Path(name) / "bundle"
        export_policy(run, bundle, onnx=True)
        started = time.perf_counter()
        drol_runtime.load(bundle)
        found = {"load_ms": 1e3 * (time.perf_counter() - started)}
        found["action_us"] = measure_latency(candidates(run, bundle), arguments.calls)
        found["server"] = [measure_server(bundle, clients, arguments.seconds) for clients in (1, 8, 64)]
    print(json.dumps(found, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.document:
        fill_document(arguments.document, "benchmarks/acting.py", {"table": tables(found)})


if __name__ == "__main__":
    main()
