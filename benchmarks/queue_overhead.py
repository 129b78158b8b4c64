"""What the queue costs: the same runs through `drol sweep run` and as plain `drol train` commands, two at a time.

    python benchmarks/queue_overhead.py [--steps 3000000] [--rounds 1] [--out results/queue_overhead.json]

Both are done in turn on the same two cores, each run pinned to one. Time of the clock is what users wait for, but other
work on the machine is in it; processor time is what the queue itself adds.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHANGES = {"log_interval": 100_000, "evaluation_interval": 1_000_000, "checkpoint_interval": 500_000}
TASK, METHOD, SEEDS = "toy", "bc", (0, 1)
DROL = (sys.executable, "-m", "drol.cli.main")
IMPORT = ("--import", "cluster_toys")  # tests/cluster_toys.py


def plain(folder: Path, steps: int) -> None:
    """Do the runs as somebody with two terminals would."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    waiting, running = list(SEEDS), {}
    while waiting or running:
        for core in cores:
            if core in running and running[core].poll() is not None:
                assert running.pop(core).returncode == 0
            if core not in running and waiting:
                seed = waiting.pop(0)
                flags = [f"--{name.replace('_', '-')}={value}" for name, value in CHANGES.items()]
                words = [
                    *DROL,
                    "train",
                    TASK,
                    "--algorithm",
                    METHOD,
                    "--preset",
                    "smoke",
                    "--steps",
                    str(steps),
                    *flags,
                ]
                words += ["--seeds", str(seed), "--out", str(folder / str(seed)), "--quiet", *IMPORT]
                streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                running[core] = subprocess.Popen(["taskset", "-c", str(core), *words], **streams)
        time.sleep(0.01)


def queued(folder: Path, steps: int) -> None:
    """Do the runs as a sweep."""
    settings = "\n".join(f"{name} = {value}" for name, value in {"steps": steps, **CHANGES}.items())
    text = f'name = "overhead"\ntasks = ["{TASK}"]\nmethods = ["{METHOD}"]\nseeds = {list(SEEDS)}\npreset = "smoke"\n'
    text += f'root = "{folder}"\n[settings]\n{settings}\n[search]\nmetric = "offline/single_sample_error"\n'
    (folder / "sweep.toml").write_text(text)
    command = [*DROL, "sweep", "run", str(folder / "sweep.toml"), "--processes", "2", *IMPORT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measured(way, steps: int) -> tuple[float, float]:
    """Return the seconds of the clock and of processors that it took."""
    folder = Path(tempfile.mkdtemp(prefix="overhead-"))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    way(folder, steps)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(folder)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parsed = parser.parse_args()
    paths = (ROOT / "src", ROOT / "runtime" / "src", ROOT / "tests", *filter(None, [os.environ.get("PYTHONPATH")]))
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    load, found = os.getloadavg()[0], {"plain": [], "queued": []}
    for number in range(parsed.rounds + 1):
        for name, way in (("plain", plain), ("queued", queued)):
            answer = measured(way, parsed.steps if number else 1000)  # the first round fills the caches
            if number:
                found[name].append(answer)
                print(f"{name}: {answer[0]:.1f} s, {answer[1]:.1f} s of processors", flush=True)
    best = {name: [min(each[part] for each in answers) for part in (0, 1)] for name, answers in found.items()}
    ratios = [mine / other for mine, other in zip(best["queued"], best["plain"], strict=True)]
    result = {"steps": parsed.steps, "runs": len(SEEDS), "load_before": load, **found}
    result |= {"ratio_of_seconds": ratios[0], "ratio_of_processor_seconds": ratios[1]}
    print(f"queue over plain: {ratios[0]:.3f} of the clock, {ratios[1]:.3f} of processors; load {load:.1f}")
    if parsed.out:
        parsed.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
