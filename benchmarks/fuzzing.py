"""Coverage-guided fuzzing of everything that reads files: python benchmarks/fuzzing.py --minutes 60 --csv FILE

Each reader gets an equal share of the time, in a separate process that restarts after a crash. drol must either read a
file, with exactly the numbers that another reader of the format returns, or reject it with an `InputError`. Everything
else is a fault: a traceback, a warning, an abort of the process, more than 30 seconds, or a different number. The
command writes each fault to --faults with the bytes that cause it, and then exits with code 1.

Inputs come from atheris (pip install atheris), which follows the coverage of drol's own code; the libraries beneath
(HDF5, Arrow, NumPy) are not instrumented. Without atheris, the command changes random bytes of valid files. It also
tries changed data with recomputed checksums, because wrong checksums would hide the code that reads the data.
"""

import argparse
import collections
import contextlib
import csv
import importlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from fuzzed_readers import READERS

LONGEST_SECONDS = 30
COLUMNS = ("reader", "engine", "minutes", "files", "read", "refused", "tracebacks", "aborts", "hangs", "wrong_numbers")


class Counter:
    """Counts the outcome of each file, and keeps the first file of each fault."""

    def __init__(self, attempt: Any, counts: Path, faults: Path):
        self.attempt, self.path, self.faults = attempt, counts, faults
        self.counts = collections.Counter(json.loads(counts.read_text()) if counts.exists() else {})
        self.seen: set[str] = set()
        self.written = 0.0

    def __call__(self, data: bytes) -> None:
        from drol.errors import InputError

        self.counts["files"] += 1
        try:
            self.attempt(data)
            self.counts["read"] += 1
        except InputError as error:
            self.counts["refused" if str(error).isprintable() else "tracebacks"] += 1
        except Exception as error:
            kind = "wrong_numbers" if isinstance(error, AssertionError) else "tracebacks"
            self.counts[kind] += 1
            self.keep(kind, error, data)
        if time.monotonic() > self.written + 0.5:
            self.save()

    def save(self) -> None:
        self.written = time.monotonic()
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.counts))
        partial.rename(self.path)

    def keep(self, kind: str, error: Exception, data: bytes) -> None:
        """Write a fault, unless one was raised at the same place before."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{self.path.stem}-{kind}-{type(error).__name__}-{Path(frame.filename).stem}-{frame.lineno}"
        if name not in self.seen:
            self.seen.add(name)
            (self.faults / f"{name}.bin").write_bytes(data)
            (self.faults / f"{name}.txt").write_text("".join(traceback.format_exception(error)))


def fuzz(reader: str, seconds: float, seed: int, counts: Path, faults: Path) -> None:
    """Try files on one reader until the time is over; atheris ends the process by itself."""
    stop = time.monotonic() + seconds
    guided = importlib.util.find_spec("atheris") is not None
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        folder = Path(name)
        if guided:
            atheris: Any = importlib.import_module("atheris")
            with atheris.instrument_imports(include=["drol", "zipfile", "json"]):
                attempt, seeds = READERS[reader](folder)
        else:
            attempt, seeds = READERS[reader](folder)
        counter = Counter(attempt, counts, faults)
        for content in seeds:
            attempt(content)  # valid files must be read without an error
        if not guided:
            return mutate(counter, seeds, time.monotonic() + seconds, seed)  # excludes the preparation time
        corpus = folder / "corpus"
        corpus.mkdir()
        for number, content in enumerate(seeds):
            (corpus / str(number)).write_bytes(content)
        flags = [
            f"-max_total_time={max(1, round(stop - time.monotonic()))}",
            f"-timeout={LONGEST_SECONDS}",
            f"-seed={seed + 1}",
        ]
        flags += [f"-artifact_prefix={faults}/{reader}-", f"-max_len={2 * max(map(len, seeds))}", "-verbosity=0"]
        flags += ["-rss_limit_mb=4096", "-len_control=0", "-mutate_depth=1"]

        def mutator(data: bytes, largest: int, seed: int) -> bytes:
            """Change a valid file every second time, because drol rejects most inputs of atheris at the first byte."""
            generator = random.Random(seed)
            if generator.random() < 0.5:
                return change(generator.choice(seeds), generator)[:largest]
            return atheris.Mutate(data, largest)

        atheris.Setup([sys.argv[0], *flags, str(corpus)], counter, custom_mutator=mutator)
        atheris.Fuzz()


def change(content: bytes, generator: random.Random) -> bytes:
    """Return a file with some bytes changed, removed, repeated or cut off."""
    data = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        place, kind = generator.randrange(len(data) + 1), generator.randrange(8)
        length = generator.choice((1, 2, 4, 8, 64))
        if kind < 4 and place < len(data):
            data[place] ^= 1 << generator.randrange(8)
        elif kind < 6:
            data[place : place + length] = generator.randbytes(length)
        elif kind == 6:
            del data[place : place + length]
        else:
            data[place:place] = data[place : place + length]
    return bytes(data)


def mutate(counter: Counter, seeds: list[bytes], stop: float, seed: int) -> None:
    """Try changed valid files until the time is over."""
    generator = random.Random(seed)
    while time.monotonic() < stop:
        signal.alarm(LONGEST_SECONDS)
        counter(change(generator.choice(seeds), generator))
        signal.alarm(0)
    counter.save()


def run_reader(reader: str, seconds: float, faults: Path, seed: int = 0) -> dict[str, Any]:
    """Run processes for one reader until its time is over; return its row of the table."""
    engine = "atheris" if importlib.util.find_spec("atheris") else "random"
    with tempfile.TemporaryDirectory() as name:
        counts, deaths, stop = Path(name) / f"{reader}.json", collections.Counter(), time.monotonic() + seconds
        while (left := stop - time.monotonic()) > 5 and deaths.total() < 20:
            seed += 1
            command = [sys.executable, __file__, "--reader", reader, "--seconds", str(left), "--seed", str(seed)]
            log = faults / f"{reader}-{seed}.log"
            with log.open("wb") as output:
                child = subprocess.Popen([*command, str(counts), str(faults)], stdout=output, stderr=output)
                try:
                    code = child.wait(left + 2 * LONGEST_SECONDS)
                except subprocess.TimeoutExpired:
                    child.kill()
                    code = child.wait()
            if code == 0:
                log.unlink()
            else:  # 70: libFuzzer's exit code for a timeout
                deaths["hangs" if code in (70, -signal.SIGALRM, -signal.SIGKILL) else "aborts"] += 1
        found = collections.Counter(json.loads(counts.read_text()) if counts.exists() else {}) + deaths
    return {"reader": reader, "engine": engine, "minutes": round(seconds / 60, 1)} | {
        name: found[name] for name in COLUMNS[3:]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="for all readers together (default: 5)")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS), help="(default: all)")
    parser.add_argument("--csv", type=Path, help="the table to write; rows of readers that are not run are kept")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the changes; another one tries other files (default: 0)"
    )
    parser.add_argument("--faults", type=Path, default=Path("fuzzing-faults"), help="the folder for what is found")
    arguments = parser.parse_args()
    arguments.faults.mkdir(parents=True, exist_ok=True)
    rows: dict[str, dict[str, Any]] = {}
    if arguments.csv and arguments.csv.exists():
        with arguments.csv.open(newline="") as file:
            rows = {row["reader"]: dict(row) for row in csv.DictReader(file)}
    for reader in arguments.readers:
        rows[reader] = run_reader(
            reader, 60 * arguments.minutes / len(arguments.readers), arguments.faults.resolve(), arguments.seed
        )
        print(", ".join(f"{name} {value}" for name, value in rows[reader].items()), flush=True)
        if arguments.csv:
            with arguments.csv.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows[name] for name in READERS if name in rows)
    with contextlib.suppress(OSError):
        arguments.faults.rmdir()
    return int(any(int(rows[reader][name]) for reader in arguments.readers for name in COLUMNS[6:]))


if __name__ == "__main__":
    if "--reader" in sys.argv:
        _, _, chosen, _, time_left, _, number, *paths = sys.argv
        fuzz(chosen, float(time_left), int(number), *map(Path, paths))
    else:
        sys.exit(main())
