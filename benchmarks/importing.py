"""Measure the speed and the memory of importing large files, beside a bare loop over the same file.

    python benchmarks/importing.py --gigabytes 2 --folder /tmp/big --out results/importing.json

The benchmark writes each file, reads it with only the library of its format (every value once, in blocks of about
8 MB), reads it as steps with drol, and imports it. Each of these is measured in a separate process on one core, as the
best of several repeats. Speeds are in MB of the arrays per second of processor time, which other load on the machine
changes little; wall-clock times are given, too. The benchmark removes the files and datasets afterwards.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

OBSERVATION, ACTION, EPISODE = 60, 8, 1000
ROW = 4 * (OBSERVATION + ACTION + 1) + 2
BLOCK = 30_000
KINDS = ("npz", "compressed npz", "hdf5", "compressed hdf5", "parquet", "csv")


def make_blocks(rows):
    """Yield blocks of rows of a random walk, under the names of D4RL."""
    generator = np.random.default_rng(0)
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        step = np.arange(first, first + count)
        observation = generator.normal(size=(count, OBSERVATION)).astype(np.float32).round(3)
        yield {
            "observations": observation,
            "actions": generator.uniform(-0.9, 0.9, (count, ACTION)).astype(np.float32).round(3),
            "rewards": observation[:, 0].copy(),
            "terminals": np.zeros(count, bool),
            "timeouts": step % EPISODE == EPISODE - 1,
        }


def write(path, kind, rows):
    if "npz" in kind:
        import zipfile

        compression = zipfile.ZIP_DEFLATED if "compressed" in kind else zipfile.ZIP_STORED
        shapes = next(make_blocks(1))
        with zipfile.ZipFile(path, "w", compression, allowZip64=True, compresslevel=1) as archive:
            for name, like in shapes.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    header = {"descr": like.dtype.str, "fortran_order": False, "shape": (rows, *like.shape[1:])}
                    np.lib.format.write_array_header_1_0(member, header)
                    for block in make_blocks(rows):
                        member.write(np.ascontiguousarray(block[name]).data)
    elif "hdf5" in kind:
        import h5py

        options = {"compression": "gzip", "compression_opts": 1} if "compressed" in kind else {}
        with h5py.File(path, "w") as file:
            first = 0
            for block in make_blocks(rows):
                for name, array in block.items():
                    if not first:
                        chunks = (4096, *array.shape[1:])
                        file.create_dataset(name, (rows, *array.shape[1:]), array.dtype, chunks=chunks, **options)
                    file[name][first : first + len(array)] = array
                first += len(block["rewards"])
    elif kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        writer = None
        for block in make_blocks(rows):
            columns = {
                name: pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(array.ravel()), array.shape[1])
                if array.ndim == 2
                else pyarrow.array(array)
                for name, array in block.items()
            }
            table = pyarrow.table(columns)
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
    else:
        with path.open("w") as file:
            names = [f"observations_{n}" for n in range(OBSERVATION)] + [f"actions_{n}" for n in range(ACTION)]
            file.write(",".join([*names, "rewards", "terminals", "timeouts"]) + "\n")
            for block in make_blocks(rows):
                columns = [block[name].reshape(len(block["rewards"]), -1).astype(np.float64) for name in block]
                np.savetxt(file, np.concatenate(columns, 1), fmt="%.3g", delimiter=",")


def read_bare(path, kind):
    """Read every value once, with only the library of the format."""
    total = 0.0
    if "npz" in kind:
        import zipfile

        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    while data := member.read(1 << 23):
                        total += data[0]
    elif "hdf5" in kind:
        import h5py

        with h5py.File(path, "r") as file:
            for start in range(0, len(file["rewards"]), BLOCK):
                total += sum(float(array[start : start + BLOCK].flat[0]) for array in file.values())
    elif kind == "parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
            for batch in file.iter_batches(BLOCK, use_threads=False):
                total += sum(column.nbytes for column in batch.columns)
    else:
        with path.open() as file:
            next(file)
            while lines := [line for _, line in zip(range(BLOCK), file, strict=False)]:
                total += np.loadtxt(lines, delimiter=",")[0, 0]
    return total


def child(what, path, kind, root):
    """Run one measurement; print processor seconds, wall-clock seconds and the peak memory in MB."""
    if what == "import":
        import drol.data.importing.import_files
    started, wall = time.process_time(), time.perf_counter()
    if what == "bare":
        read_bare(path, kind)
    elif what == "steps":
        from drol.data.readers import open_steps

        for _ in open_steps(path, {}).blocks():
            pass
    else:
        drol.data.importing.import_files.import_files([path], "big", root=root)
    seconds, wall = time.process_time() - started, time.perf_counter() - wall
    print(json.dumps([seconds, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def measure(what, path, kind, root):
    shutil.rmtree(root, ignore_errors=True)
    command = [sys.executable, __file__, "--child", what, "--folder", str(path), "--kind", kind, "--root", str(root)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    prefix = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    answer = subprocess.run([*prefix, *command], capture_output=True, text=True, check=True, env=environment)
    shutil.rmtree(root, ignore_errors=True)
    return json.loads(answer.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.folder, given.kind, given.root)
        return
    rows = int(given.gigabytes * 1e9 / ROW)
    given.folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for kind in given.kinds:
        path = given.folder / f"big.{kind.split()[-1]}"
        write(path, kind, rows if kind != "csv" else rows // 4)
        size = (rows if kind != "csv" else rows // 4) * ROW / 1e6
        size = path.stat().st_size / 1e6 if kind == "csv" else size
        result = {"file_megabytes": round(path.stat().st_size / 1e6)}
        for what in ("bare", "steps", "import"):
            runs = [measure(what, path, kind, given.folder / "datasets") for _ in range(given.repeats)]
            result[f"{what}_megabytes_per_second"] = round(size / min(seconds for seconds, _, _ in runs))
            result[f"{what}_wall_seconds"] = round(min(wall for _, wall, _ in runs), 1)
            result[f"{what}_memory_megabytes"] = round(max(memory for _, _, memory in runs))
        bare = result["bare_megabytes_per_second"]
        for what in ("steps", "import"):
            result[f"{what}_share_of_bare"] = round(result[f"{what}_megabytes_per_second"] / bare, 2)
        found[kind] = result
        print(kind, json.dumps(result), flush=True)
        path.unlink()
    if given.out:
        content = {"command": " ".join(["python benchmarks/importing.py", *sys.argv[1:]]), "load": os.getloadavg()[0]}
        given.out.write_text(json.dumps(content | {"rows": rows, "formats": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
