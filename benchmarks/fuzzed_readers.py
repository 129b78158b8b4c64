"""The readers that `fuzzing.py` tests: for each type of file, valid examples and a function that reads bytes.

The first byte of an input selects the meaning of the other bytes: the complete file, or one part of an otherwise valid
file with recomputed checksums. The function raises an `InputError` if drol rejects the file, and an `AssertionError` if
the values that drol read differ from the values in the file. The functions import drol, so that atheris can trace its
coverage.
"""

import csv
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Attempt = Callable[[bytes], None]
STEPS = {
    "observations": np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2),
    "actions": np.linspace(-0.9, 0.9, 12, dtype=np.float32)[:, None],
    "rewards": np.arange(12, dtype=np.float32),
    "terminals": np.arange(12) == 5,
    "timeouts": np.arange(12) == 11,
}


def npz(folder: Path) -> tuple[Attempt, list[bytes]]:
    """A complete archive, or one array in a valid archive."""
    path = folder / "data.npz"

    def reference(names: Sequence[str]) -> dict[str, np.ndarray]:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names}

    def attempt(data: bytes) -> None:
        if data[:1] == b"a":
            path.write_bytes(data[1:])
        else:
            with zipfile.ZipFile(path, "w") as archive:
                for name, array in STEPS.items():
                    archive.writestr(f"{name}.npy", data[1:] if name == "observations" else as_npy(array))
        read_steps(path, reference)

    archive, packed = io.BytesIO(), io.BytesIO()
    np.savez(archive, **STEPS)
    np.savez_compressed(packed, **STEPS)
    arrays = [STEPS["observations"], np.asfortranarray(STEPS["observations"]), STEPS["observations"].astype(">f8")]
    return attempt, [b"a" + archive.getvalue(), b"a" + packed.getvalue(), *(b"b" + as_npy(array) for array in arrays)]


def hdf5(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Flat files, and files with a group for each episode."""
    import h5py

    path = folder / "data.hdf5"

    def reference(names: Sequence[str]) -> dict[str, np.ndarray]:
        with h5py.File(path, "r") as file:
            return {name: np.asarray(file[name]) for name in names}

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        read_steps(path, reference)

    def write(version: str, **options: Any) -> bytes:
        with h5py.File(path, "w", libver=version) as file:
            for name, array in STEPS.items():
                file.create_dataset(name, data=array, **options)
        return path.read_bytes()

    seeds = [write("earliest"), write("latest", compression="gzip"), write("latest", fletcher32=True, chunks=True)]
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(2):
            group = file.create_group(f"episode_{number}")
            group["observations"] = STEPS["observations"][:7]
            for name in ("actions", "rewards", "terminals", "timeouts"):
                group[name] = STEPS[name][:6]
    return attempt, [*seeds, path.read_bytes()]


def parquet(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Lists of fixed and of variable length, with and without page checksums."""
    import pyarrow
    import pyarrow.parquet

    path = folder / "data.parquet"

    def reference(names: Sequence[str]) -> dict[str, np.ndarray]:
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read(columns=list(names), use_threads=False)
        return {name: np.asarray(table.column(name).to_pylist(), float) for name in names}

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        read_steps(path, reference)

    lists = {name: array.tolist() for name, array in STEPS.items()}
    fixed = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(STEPS["observations"].ravel()), 2)
    seeds = []
    for columns, options in (
        (lists, {"compression": "none"}),
        (lists | {"observations": fixed}, {"row_group_size": 5}),
        (lists, {"write_page_checksum": True, "use_dictionary": False}),
    ):
        pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
        seeds.append(path.read_bytes())
    return attempt, seeds


def arrow(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Arrow's file format and its stream format, with lists of fixed and of variable length."""
    import pyarrow
    import pyarrow.ipc

    path = folder / "data.arrow"

    def reference(names: Sequence[str]) -> dict[str, np.ndarray]:
        content = path.read_bytes()
        is_file = content.startswith(b"ARROW1")
        table = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(content).read_all()
        return {name: np.asarray(table.column(name).to_pylist(), float) for name in names}

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        read_steps(path, reference)

    lists = {name: array.tolist() for name, array in STEPS.items()}
    fixed = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(STEPS["observations"].ravel()), 2)
    seeds = []
    for columns, new in ((lists, pyarrow.ipc.new_file), (lists | {"observations": fixed}, pyarrow.ipc.new_stream)):
        table = pyarrow.table(columns)
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        seeds.append(path.read_bytes())
    return attempt, seeds


def text(folder: Path) -> tuple[Attempt, list[bytes]]:
    """CSV files."""
    path = folder / "data.csv"
    words_of_flags = {"true": 1.0, "false": 0.0, "": float("nan")}

    def reference(names: Sequence[str]) -> dict[str, np.ndarray]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *lines = [line for line in csv.reader(file) if line]
        columns = [name.strip() for name in header]

        def number(cell: str) -> float:
            word = cell.strip().lower()
            return words_of_flags[word] if word in words_of_flags else float(cell)

        return {name: np.asarray([number(line[columns.index(name)]) for line in lines]) for name in names}

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        read_steps(path, reference)

    columns = ["observations_0", "observations_1", "actions", "rewards", "terminals", "timeouts"]
    values = np.column_stack(list(STEPS.values())).tolist()
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in values)]
    words = [",".join([*map(str, row[:4]), *(("false", " TRUE ")[int(flag)] for flag in row[4:])]) for row in values]
    return attempt, ["\n".join(lines).encode(), "\r\n".join([lines[0], *words]).encode("utf-8-sig")]


def bag(folder: Path) -> tuple[Attempt, list[bytes]]:
    """MCAP files with messages in JSON, and with messages of ROS 2 and their definition."""
    import struct

    from mcap.writer import Writer

    path = folder / "data.mcap"
    mapping = {"observation": ["state/x"], "action": ["cmd/v"]}

    def attempt(data: bytes) -> None:
        from drol.data.readers import open_steps

        path.write_bytes(data)
        for block, _ in open_steps(path, mapping).blocks():
            assert len(block["observation"]) == len(block["action"]) == len(block["time"])

    def write(encoding: str, kind: str, definition: str, pack: Callable[[str, float], bytes]) -> bytes:
        with path.open("wb") as file:
            writer = Writer(file)
            writer.start(profile="ros2" if kind == "ros2msg" else "")
            for topic, field in (("/state", "x"), ("/cmd", "v")):
                schema = writer.register_schema(f"pkg/msg/{field.upper()}", kind, (definition % field).encode())
                channel = writer.register_channel(topic, encoding, schema)
                for number in range(6):
                    writer.add_message(channel, 10**9 + number, pack(field, number / 6), 10**9 + number)
            writer.finish()
        return path.read_bytes()

    as_json = write("json", "jsonschema", '{"%s": 0}', lambda field, value: json.dumps({field: value}).encode())
    as_cdr = write("cdr", "ros2msg", "float64 %s\n", lambda _, value: b"\0\1\0\0" + struct.pack("<d", value))
    return attempt, [as_json, as_cdr]


def read_steps(path: Path, reference: Callable[[Sequence[str]], Mapping[str, np.ndarray]]) -> None:
    """Read a file in every way that drol does; compare the numbers with another reader's numbers."""
    from drol.data.importing.audit import audit_files, audit_stored
    from drol.data.importing.import_files import import_files
    from drol.data.readers import open_steps
    from drol.data.trajectory_rows import check_rows

    file = open_steps(path, {})
    blocks = [block for block, _ in file.blocks()]
    if blocks and "episode" not in file.names:
        expected = reference(sorted({name for names in file.chosen.values() for name in names}))
        for field, names in file.chosen.items():
            found = np.concatenate([block[field] for block in blocks])
            wanted = np.concatenate([expected[name].reshape(len(found), -1) for name in names], -1)
            with np.errstate(invalid="ignore"):  # NumPy warns about casts of some NaN values
                np.testing.assert_array_equal(found.reshape(wanted.shape).astype(float), wanted.astype(float))
    audit = audit_files([path])
    assert str(audit).replace("\n", "").isprintable()
    if not audit.problems:
        root = path.parent / "datasets"
        stored = import_files([path], "mine", root=root, replace=True, validation=0.5)
        for split in stored.splits:
            check_rows(stored.arrays(split))
        assert audit_stored("mine", root).counts == audit.counts


def episodes_hdf5(folder: Path) -> tuple[Attempt, list[bytes]]:
    """HDF5 files of robomimic or d3rlpy; the first byte selects the format."""
    import h5py

    path = folder / "data.hdf5"

    def attempt(data: bytes) -> None:
        path.write_bytes(data[1:])
        import_and_check(path)

    with h5py.File(path, "w") as file:
        for number in range(2):
            demo = file.create_group(f"data/demo_{number}")
            demo.attrs["num_samples"] = 6
            demo["obs/q"], demo["next_obs/q"] = STEPS["observations"][:6], STEPS["observations"][1:7]
            demo["actions"], demo["rewards"], demo["dones"] = (
                STEPS["actions"][:6],
                STEPS["rewards"][:6],
                np.arange(6) == 5,
            )
        file["mask/train"] = [b"demo_0"]
    robomimic = b"r" + path.read_bytes()
    with h5py.File(path, "w") as file:
        file["columns"] = ["observations", "actions", "rewards", "terminated"]
        file["num_episodes"], file["version"] = 2, "2.1"
        for number in range(2):
            for name in ("observations", "actions"):
                file[f"{name}_{number}"] = STEPS[name][:6]
            file[f"rewards_{number}"], file[f"terminated_{number}"] = STEPS["rewards"][:6, None], number == 0
    return attempt, [robomimic, b"d" + path.read_bytes()]


def lerobot(folder: Path) -> tuple[Attempt, list[bytes]]:
    """A folder of LeRobot: its information, its tasks or its steps."""
    import pyarrow
    import pyarrow.parquet

    root = folder / "lerobot"
    paths = {
        b"i": root / "meta/info.json",
        b"t": root / "meta/tasks.jsonl",
        b"s": root / "data/chunk-000/file-000.parquet",
    }
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    features = {
        "observation.state": {"dtype": "float32", "names": ["x", "y"]},
        "action": {"dtype": "float32", "names": ["u"]},
    }
    paths[b"i"].write_text(json.dumps({"codebase_version": "v2.1", "fps": 10, "features": features}))
    paths[b"t"].write_text('{"task_index": 0, "task": "push"}\n')
    columns = {
        "observation.state": STEPS["observations"].tolist(), "action": STEPS["actions"].tolist(),
        "next.reward": STEPS["rewards"], "timestamp": np.tile(np.arange(6) / 10, 2).astype(np.float32),
        "frame_index": np.tile(np.arange(6), 2), "episode_index": np.repeat([0, 1], 6), "task_index": np.zeros(12, int),
    }  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(columns), paths[b"s"], compression="none")
    whole = {letter: path.read_bytes() for letter, path in paths.items()}

    def attempt(data: bytes) -> None:
        letter = data[:1] if data[:1] in paths else b"s"
        for other, content in whole.items():
            paths[other].write_bytes(data[1:] if other == letter else content)
        import_and_check(root)

    return attempt, [letter + content for letter, content in whole.items()]


def minari(folder: Path) -> tuple[Attempt, list[bytes]]:
    """A folder of Minari: its description or its steps."""
    import h5py

    root = folder / "minari" / "data"
    root.mkdir(parents=True)
    paths = {b"d": root / "metadata.json", b"s": root / "main_data.hdf5"}
    space = {"type": "Box", "dtype": "float32", "shape": [1], "low": [-2.0], "high": [2.0]}
    paths[b"d"].write_text(json.dumps({"data_format": "hdf5", "action_space": json.dumps(space), "total_episodes": 2}))
    with h5py.File(paths[b"s"], "w") as file:
        for number in range(2):
            group = file.create_group(f"episode_{number}")
            group["observations/q"] = STEPS["observations"][:7]
            group["actions"], group["rewards"] = STEPS["actions"][:6], STEPS["rewards"][:6]
            group["terminations"], group["truncations"] = np.arange(6) == 5 * number, np.arange(6) == 5
    whole = {letter: path.read_bytes() for letter, path in paths.items()}

    def attempt(data: bytes) -> None:
        letter = data[:1] if data[:1] in paths else b"s"
        for other, content in whole.items():
            paths[other].write_bytes(data[1:] if other == letter else content)
        import_and_check(root)

    return attempt, [letter + content for letter, content in whole.items()]


def import_and_check(path: Path) -> None:
    """Audit and import files; check that the dataset agrees with the audit."""
    from drol.data.import_options import ReadingOptions
    from drol.data.importing.audit import audit_files, audit_stored
    from drol.data.importing.import_files import import_files
    from drol.data.trajectory_rows import check_rows

    reading = ReadingOptions("timeout")
    audit = audit_files([path], reading=reading)
    assert str(audit).replace("\n", "").isprintable()
    if not audit.problems:
        root = path.parent / "datasets"
        stored = import_files([path], "mine", reading=reading, root=root, replace=True, validation=0.5)
        for split in stored.splits:
            check_rows(stored.arrays(split))
        assert audit_stored("mine", root).counts == audit.counts


def results(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Result files; drol reads, checks and compares them."""
    from drol.results.result import Result, settings_id

    path = folder / "results.csv"
    made = []
    for method in ("drol", "fql"):
        for seed in range(3):
            outcomes = "110010"[seed:] + "110010"[:seed]
            made.append(
                Result(
                    task="maze", method=method, settings="{}", settings_id=settings_id("{}"), seed=seed, step=10,
                    steps=10, evaluation="training", best_of=1, first_episode_seed=0, episodes=6, outcomes=outcomes,
                    score=50.0, score_name="success (%)", mean_return=-3.5, mean_length=4.0, success_timing="before",
                    dataset_fingerprint="ab" * 32, versions="jax 0.10.1, mujoco 3.9.1", run="runs/one",
                )
            )  # fmt: skip

    def attempt(data: bytes) -> None:
        from drol.results.compare import compare
        from drol.results.comparison_tables import print_comparison
        from drol.results.merge import check_results

        path.write_bytes(data)
        assert all(line.replace("\n", " ") for line in check_results([path]))
        assert print_comparison(compare(path))

    from drol.results.result_files import write_results

    write_results(made, path)
    return attempt, [path.read_bytes()]


def sweep(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Sweep files; drol lists their runs."""
    path = folder / "sweep.toml"

    def attempt(data: bytes) -> None:
        from drol.sweeps.sweep_file import read_sweep

        path.write_bytes(data)
        assert repr(read_sweep(path))

    text = """name = "candidates"
tasks = ["pointmaze-medium-navigate-singletask-task1-v0"]
methods = ["drol", "fql"]
seeds = [0, 1]
preset = "small"
[settings]
steps = 20_000
[parameters]
learning_rate = [1e-4, 3e-4]
discount = { from = 0.9, to = 0.99, step = 0.03 }
num_candidates = { values = [1, 4], methods = ["drol"] }
"""
    return attempt, [text.encode()]


def bundle_of(folder: Path) -> Path:
    """Make the folder of an exported policy."""
    import drol
    from drol.export.export import export_policy

    run = drol.open_run(trained_run(folder), task=drol.task_from(drol.Dataset.from_arrays(*STEPS.values()), "toy"))
    export_policy(run, folder / "bundle")
    return folder / "bundle"


def bundle(folder: Path) -> tuple[Attempt, list[bytes]]:
    """The files of an exported policy, as they are or with recomputed checksums."""
    import drol_runtime
    from drol_runtime.bundle import digest

    from drol.errors import InputError

    root = bundle_of(folder)
    names = {b"d": "bundle.json", b"w": "weights.safetensors", b"t": "test.safetensors"}
    whole = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    description, action = names[b"d"], drol_runtime.load(root).act([0.0, 0.5], seed=0)

    def attempt(data: bytes) -> None:
        letter, forged = data[:1].lower(), data[:1].isupper()
        changed = names.get(letter, description)
        for name, content in whole.items():
            (root / name).write_bytes(data[1:] if name == changed else content)
        if forged:
            try:
                found = json.loads(data[1:]) if changed == description else json.loads(whole[description])
                if changed != description:
                    found["files"][changed] = hashlib.sha256(data[1:]).hexdigest()
                found["sha256"] = digest(found)
                (root / description).write_text(json.dumps(found))
            except (ValueError, RecursionError, TypeError, KeyError):
                pass
        try:
            found = drol_runtime.load(root).act([0.0, 0.5], seed=0)
            assert np.isfinite(drol_runtime.check(root))
        except drol_runtime.InputError as error:
            raise InputError(str(error)) from error
        assert np.isfinite(found).all()
        if not forged:
            np.testing.assert_array_equal(found, action)

    return attempt, [kind + whole[name] for letter, name in names.items() for kind in (letter, letter.upper())]


def requests(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Requests to the policy server; after any request, the server must still answer a valid one."""
    import socket
    import threading

    import drol_runtime
    from drol_runtime.policy_server import PolicyServer

    server = PolicyServer(drol_runtime.load(bundle_of(folder)), port=0)
    threading.Thread(target=server.run, daemon=True).start()
    body = json.dumps({"observation": [0.0, 0.5], "seed": 0}).encode()
    head = b"POST /act HTTP/1.1\r\nHost: localhost\r\n"
    good = head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
    chunks = head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    batch = json.dumps({"observation": [[0.0, 0.5]] * 3, "latent": [[[0.1]]] * 3}).encode()
    several = head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(batch) + batch

    def ask(data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            answer = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(1 << 16):
                    answer += part
            except ConnectionError:
                pass
        return answer

    first: list[bytes] = []

    def attempt(data: bytes) -> None:
        from drol.errors import InputError

        answer = ask(data)
        assert not answer or answer.startswith(b"HTTP/1.1 ")
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
        expected = ask(good).partition(b"\r\n\r\n")[2]
        first[:] = first or [expected]
        assert b"action" in expected
        assert expected == first[0]
        if not answer.startswith(b"HTTP/1.1 2"):
            raise InputError("the request was rejected")

    return attempt, [good, chunks, several, b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]


def dataset(folder: Path) -> tuple[Attempt, list[bytes]]:
    """A manifest or an array of a dataset, as it is or with recomputed checksums."""
    from drol.data.dataset import Dataset
    from drol.data.importing.audit import audit_stored
    from drol.data.importing.episode_writer import EpisodeWriter
    from drol.data.on_disk import OnDiskDataset
    from drol.data.store.manifest import digest
    from drol.data.store.stored import StoredDataset, read_checksums
    from drol.tasks.own_data import describe_dataset

    os.environ["DROL_DATA"] = str(folder)
    with EpisodeWriter("mine", folder, validation=0.5) as writer:
        for _ in range(2):
            writer.add(STEPS["observations"], STEPS["actions"][:11], STEPS["rewards"][:11], terminal=True)
    whole = {path: path.read_bytes() for path in (folder / "mine").rglob("*.*")}
    paths = {b"m"[0]: folder / "mine" / "dataset.json", b"s"[0]: folder / "mine" / "dataset.json"}
    for letter, name in zip(b"oarcl", ("observation", "action", "reward", "continues", "last"), strict=True):
        paths |= {
            letter: folder / "mine" / "train" / f"{name}.npy",
            letter - 32: folder / "mine" / "train" / f"{name}.npy",
        }
    right = StoredDataset.open("mine", folder).manifest

    def sign(content: Any) -> bytes:
        return json.dumps(content | {"sha256": digest(content)}).encode()

    def attempt(data: bytes) -> None:
        letter = data[0] if data and data[0] in paths else b"m"[0]
        for path, content in whole.items():
            path.write_bytes(content)
        paths[letter].write_bytes(data[1:])
        forged = letter == b"s"[0] or letter < 96  # below 96: upper case
        if letter == b"s"[0]:
            try:
                content = json.loads(data[1:])
                paths[letter].write_bytes(sign(content) if isinstance(content, dict) else data[1:])
            except (ValueError, RecursionError):
                pass
        elif forged:
            sums = read_checksums(folder / "mine", "train")
            splits = right["splits"] | {"train": right["splits"]["train"] | sums}
            (folder / "mine" / "dataset.json").write_bytes(sign(right | {"splits": splits}))
        entry = describe_dataset("mine")
        assert entry.damage.isprintable()
        stored = StoredDataset.open("mine", folder)
        assert str(audit_stored("mine", folder)).replace("\n", "").isprintable()
        arrays: dict[str, Any] = {name: np.array(array) for name, array in stored.arrays("train").items()}
        memory, mapped = Dataset.from_rows(**arrays), OnDiskDataset.open(stored, "train")
        assert memory.size == mapped.size == entry.transitions
        assert memory.fingerprint() == mapped.fingerprint()
        assert forged or memory.fingerprint() == right["splits"]["train"]["fingerprint"]
        np.testing.assert_array_equal(mapped.take(np.arange(mapped.size)).reward, arrays["reward"][~arrays["last"]])

    return attempt, [bytes([letter]) + whole[path] for letter, path in paths.items()]


def trained_run(folder: Path) -> Path:
    """Make the folder of a run of two updates."""
    import drol
    from drol.algorithms.bc import BC

    data = drol.Dataset.from_arrays(*STEPS.values())
    config = drol.RunConfig(algorithm=BC(hidden_sizes=(4,), batch_size=4), task="toy", steps=2, log_interval=1)
    drol.train(config, folder / "run", drol.task_from(data, "toy"), quiet=True)
    return folder / "run"


def config(folder: Path) -> tuple[Attempt, list[bytes]]:
    """`config.json` of a run."""
    import drol

    run = trained_run(folder)

    def attempt(data: bytes) -> None:
        (run / "config.json").write_bytes(data)
        assert repr(drol.open_run(run)).isprintable()

    return attempt, [(run / "config.json").read_bytes()]


def rows(folder: Path) -> tuple[Attempt, list[bytes]]:
    """The row files of a run."""
    import drol

    run = trained_run(folder)
    names = {"m": "metrics", "e": "evaluations", "x": "extra_evaluations", "f": "offline", "o": "online_episodes"}
    kinds = names | {"f": "offline_evaluations"}
    offline = {
        "step": 2,
        "seed": 0,
        "best_of": 1,
        "discount": 0.9,
        "updates": 3,
        "unseen": True,
        "seconds": 1.0,
        "q": 0.5,
    }
    episode = {"seed": 1, "total_reward": 1.0, "length": 3, "success": True}
    evaluation = {"step": 2, "seed": 0, "score": 1.5, "seconds": 0.1, "best_of": 2, "episodes": [episode]}
    online = {"step": 3, "seed": 0, "total_reward": 1.0, "length": 3, "success": False}

    def attempt(data: bytes) -> None:
        kind = chr(data[0]) if data[:1] and chr(data[0]) in names else "m"
        path = run / f"{names[kind]}.jsonl"
        path.write_bytes(data[1:])
        try:
            found = getattr(drol.open_run(run), kinds[kind])
            for row in found:
                assert isinstance(row.step, int)
                json.dumps(row.to_dict())
                row.columns()
        finally:
            path.unlink()

    made = {"e": evaluation, "x": evaluation, "f": offline, "o": online}
    seeds = [letter.encode() + 3 * f"{json.dumps(row)}\n".encode() for letter, row in made.items()]
    return attempt, [b"m" + (run / "metrics.jsonl").read_bytes(), *seeds]


def policy(folder: Path) -> tuple[Attempt, list[bytes]]:
    """Manifest and arrays of a policy, as they are or with recomputed checksums."""
    import drol

    saved = next(each for each in sorted((trained_run(folder) / "policies").iterdir()) if each.is_dir())
    paths = {"manifest": saved / "manifest.json", "arrays": saved / "arrays.safetensors"}
    whole = {path: path.read_bytes() for path in paths.values()}
    right, action = json.loads(whole[paths["manifest"]]), drol.load_policy(saved).act([0.0, 0.5], seed=0)

    def sign(manifest: Mapping[str, Any]) -> bytes:
        content = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
        checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return json.dumps(content | {"manifest_sha256": checksum}).encode()

    def attempt(data: bytes) -> None:
        kind, content = data[:1], data[1:]
        for path, good in whole.items():
            path.write_bytes(good)
        paths["arrays" if kind in (b"a", b"b") else "manifest"].write_bytes(content)
        if kind == b"s":
            try:
                manifest = json.loads(content)
                paths["manifest"].write_bytes(sign(manifest) if isinstance(manifest, dict) else content)
            except (ValueError, RecursionError):
                pass
        elif kind == b"b":
            paths["manifest"].write_bytes(sign(right | {"sha256": hashlib.sha256(content).hexdigest()}))
        loaded = drol.load_policy(saved)
        if kind not in (b"s", b"b"):
            np.testing.assert_array_equal(loaded.act([0.0, 0.5], seed=0), action)

    return attempt, [
        letter + whole[path]
        for letter, path in zip(
            (b"m", b"s", b"a", b"b"), 2 * list(paths.values())[:1] + 2 * list(paths.values())[1:], strict=True
        )
    ]


def as_npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


READERS = {
    "npz": npz,
    "hdf5": hdf5,
    "parquet": parquet,
    "arrow": arrow,
    "csv": text,
    "bag": bag,
    "episodes": episodes_hdf5,
    "lerobot": lerobot,
    "minari": minari,
    "dataset": dataset,
    "config": config,
    "policy": policy,
    "rows": rows,
    "results": results,
    "sweep": sweep,
    "bundle": bundle,
    "requests": requests,
}
