"""How long pages take: python benchmarks/pages.py --out results/pages.json

Nothing is trained: folders of runs are written as training leaves them, with made-up scores and untrained policies. A
report of two groups of ten seeds is timed as a command; `drol watch` is opened in Chromium with 200 runs, and rows are
appended while the page is looked at.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax
import numpy as np
from playwright.sync_api import sync_playwright

from drol.checkpoints import step_name
from drol.data.standardisation import Standardisation
from drol.pages.watch.server import make_server
from drol.paper.presets import settings
from drol.policy import save_policies
from drol.runs.directory import RunDirectory
from drol.runs.rows import EvaluationRow, MetricsRow
from drol.sweeps.metrics import logged_names
from drol.tasks.base import Episode
from drol.types import Spec

STEPS, EPISODES, ROWS = 100_000, 50, 100
METHODS = ("drol", "fql", "iql", "rebrac")
LOOKS = 8


def write_run(folder: Path, method: str, seed: int, number: int, policies: bool) -> None:
    """Write a run of one seed that learned as well as its number says."""
    generator = np.random.default_rng(1000 * number + seed)
    config = settings(algorithm=method, preset="laptop", seeds=(seed,), steps=STEPS, evaluation_interval=STEPS // 10)
    directory = RunDirectory(folder)
    folder.mkdir(parents=True)
    directory.write_config({"run": config.to_dict(), "dataset_fingerprint": "", "circumstances": {}})
    names = [name for name in logged_names(method) if not name.startswith("validation/")]
    rows = []
    for step in np.linspace(STEPS // ROWS, STEPS, ROWS).astype(int).tolist():
        values = np.exp(-step / 3e4) + 0.2 * number + 0.05 * generator.normal(size=len(names))
        rows.append(MetricsRow(step, seed, dict(zip(names, values.tolist(), strict=True))))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row.to_dict()) + "\n" for row in rows))
    spec = Spec((2,), 2)
    for step in range(0, STEPS + 1, STEPS // 10):
        rate = (0.9 - 0.2 * number) * (1 - np.exp(-step / 3e4)) * generator.uniform(0.9, 1.1)
        played = tuple(Episode(each, -1.0, 200, bool(generator.random() < rate)) for each in range(EPISODES))
        score = 100 * sum(each.success for each in played) / EPISODES
        directory.log_evaluation(EvaluationRow(step, seed, score, played))
        if policies:
            networks = jax.vmap(lambda key: config.algorithm.init(key, spec).policy)(
                jax.random.split(jax.random.key(seed + step), 1)
            )
            tree = (networks, Standardisation.identity(spec))
            saved = directory.policies / step_name(step)
            save_policies(saved, config.algorithm, tree, spec, (seed,), score_name="success (%)")
            walks = generator.normal(scale=0.3, size=(EPISODES, 200, 2)).cumsum(1)
            directory.save_trajectories(step, seed, list(walks.astype(np.float32)))


def time_report(root: Path) -> dict[str, float]:
    """Time the command for two groups of ten seeds; the second time, when programs are compiled already."""
    for number, method in enumerate(METHODS[:2]):
        for seed in range(10):
            write_run(root / method / f"seed-{seed}", method, seed, number, policies=True)
    page = root / "report.html"
    command = [sys.executable, "-m", "drol.cli.main", "report", str(root), "--out", str(page)]
    for _ in range(2):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True)
        seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"runs": 20, "seconds": seconds, "processor_seconds": processor, "page_bytes": page.stat().st_size}


def time_watching(root: Path) -> dict[str, object]:
    """Open the list of 200 runs in Chromium a few times, then append rows and wait until each is shown."""
    for number, method in enumerate(METHODS):
        for seed in range(50):
            write_run(root / method / f"seed-{seed}", method, seed, number, policies=False)
    server = make_server(root, port=0)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    start = time.monotonic()
    while server.watcher.list_runs(0)["reading"]:
        pass
    found: dict[str, object] = {"runs": 200, "first_reading_seconds": time.monotonic() - start}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(channel=None, executable_path=chromium(), args=["--no-sandbox"])
        paints, whole, updates = [], [], []
        for _ in range(LOOKS):
            page = browser.new_page()
            page.goto(server.address)
            page.locator("#runs li").nth(199).wait_for(state="attached")
            whole.append(page.evaluate("performance.now()") / 1000)
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            page.close()
        page = browser.new_page()
        page.goto(server.address)
        page.locator("#runs li").nth(199).wait_for(state="attached")
        for look in range(LOOKS):
            page.wait_for_timeout(370 * (look % 3))
            step, start = STEPS + 1 + look, time.monotonic()
            RunDirectory(root / "drol" / "seed-0").log_metrics(MetricsRow(step, 0, {"critic_loss": 1.0}))
            page.get_by_text(f"{step:,} of").wait_for(state="attached")
            updates.append(time.monotonic() - start)
        browser.close()
    server.shutdown()
    return found | {"first_paint_seconds": paints, "all_rows_seconds": whole, "update_seconds": updates}


def chromium() -> str:
    return next(path for path in ("/usr/bin/chromium", "/usr/bin/google-chrome") if Path(path).exists())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write what was measured (.json)")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = os.getloadavg()[0]
        found = {"load": load, "cores": os.cpu_count(), "report": time_report(Path(folder) / "report")}
        found["watch"] = time_watching(Path(folder) / "watch")
    text = json.dumps(found, indent=2)
    print(text)
    if parsed.out:
        parsed.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
