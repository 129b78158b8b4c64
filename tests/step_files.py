"""The same steps in every format that can be imported, datasets on disk, and the refusals of both."""

import dataclasses

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

from drol.data.import_options import Counts
from drol.data.store.stored import StoredDataset
from drol.data.store.writer import DatasetWriter
from drol.errors import InputError

COUNT, ENDS, TERMINALS = 60, (9, 19, 34, 59), (9, 34)
ABOUT = {
    "action_low": [-1.0, -1.0],
    "action_high": [1.0, 1.0],
    "actions_scaled": False,
    "ends": "flags",
    "fields": {"observation": "observations", "action": "actions"},
    "dimensions": {"observation": None, "action": None},
    "sampling": None,
    "unused": [],
    "notes": [],
    "counts": dataclasses.asdict(Counts()),
    "files": [],
    "transform": None,
}


def refusal(call, *arguments, **options) -> str:
    """The one line with which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_dataset(root, rows, name="mine", pieces=1, **options) -> StoredDataset:
    """Write rows as a dataset on disk, in the given number of pieces."""
    with DatasetWriter(name, root, **options) as writer:
        for piece in np.array_split(np.arange(len(rows["last"])), pieces):
            writer.append({key: array[piece] for key, array in rows.items()})
        writer.publish(ABOUT)
    return StoredDataset.open(name, root)


@st.composite
def episode_lengths(draw, rows: int) -> list[int]:
    """Return the lengths of trajectories that fill the given number of rows."""
    lengths, left = [], rows
    while left:
        taken = draw(st.integers(2, left))
        taken = left if left - taken == 1 else taken  # one row would hold no transition
        lengths.append(taken - 1)
        left -= taken
    return lengths


def flat_steps(seed: int = 0) -> dict[str, np.ndarray]:
    """Steps by the names of D4RL."""
    generator = np.random.default_rng(seed)
    terminals = np.isin(np.arange(COUNT), TERMINALS)
    return {
        "observations": generator.normal(size=(COUNT, 3)).astype(np.float32),
        "actions": generator.uniform(-0.9, 0.9, (COUNT, 2)).astype(np.float32),
        "rewards": generator.normal(size=COUNT).astype(np.float32),
        "terminals": terminals,
        "timeouts": np.isin(np.arange(COUNT), ENDS) & ~terminals,
    }


def episode_numbers() -> np.ndarray:
    return np.searchsorted(ENDS, np.arange(COUNT))


def write_npz(path, steps, save=np.savez):
    save(path, **steps)


def write_compressed(path, steps):
    np.savez_compressed(path, **steps)


def write_hdf5(path, steps):
    with h5py.File(path, "w") as file:
        for name, array in steps.items():
            file.create_dataset(name, data=array, compression="gzip")


def write_csv(path, steps):
    columns = {}
    for name, array in steps.items():
        parts = array.T if array.ndim == 2 else [array]
        for number, part in enumerate(parts):
            columns[f"{name}_{number}" if array.ndim == 2 else name] = part
    lines = [",".join(columns)] + [",".join(str(value) for value in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path, steps):
    columns = {}
    for name, array in steps.items():
        if array.ndim == 2:
            values = pyarrow.array(array.ravel())
            columns[name] = pyarrow.FixedSizeListArray.from_arrays(values, array.shape[1])
        else:
            columns[name] = pyarrow.array(array)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=17)


def write_minari(path, steps):
    """Groups with one observation more than actions; the extra one is the first of the next episode."""
    following = np.concatenate((steps["observations"][1:], steps["observations"][:1]))
    with h5py.File(path, "w") as file:
        for number, (first, stop) in enumerate(
            zip((0, *(end + 1 for end in ENDS[:-1])), (end + 1 for end in ENDS), strict=True)
        ):
            group = file.create_group(f"episode_{number}")
            part = slice(first, stop)
            group["observations"] = np.concatenate((steps["observations"][part], following[stop - 1 : stop]))
            group["actions"] = steps["actions"][part]
            group["rewards"] = steps["rewards"][part]
            group["terminations"] = steps["terminals"][part]
            group["truncations"] = steps["timeouts"][part]


def write_robomimic(path, steps):
    """Demonstrations with parts of observations in groups, beside simulator states that a robot does not have."""
    following = np.concatenate((steps["observations"][1:], steps["observations"][:1]))
    starts = (0, *(end + 1 for end in ENDS[:-1]))
    with h5py.File(path, "w") as file:
        for number, (first, end) in enumerate(zip(starts, ENDS, strict=True)):
            group = file.create_group(f"data/demo_{number}")
            part = slice(first, end + 1)
            for name, array in (("obs", steps["observations"][part]), ("next_obs", following[part])):
                group[f"{name}/eef_pos"] = array[:, :2]
                group[f"{name}/gripper"] = array[:, 2:]
                group[f"{name}/image"] = np.zeros((len(array), 8, 8, 3), np.uint8)
            group["states"] = np.zeros((end + 1 - first, 20))
            group["actions"] = steps["actions"][part]
            group["rewards"] = steps["rewards"][part]
            group["dones"] = np.arange(first, end + 1) == end
        file["mask/train"] = np.array([b"demo_0", b"demo_1"])


FORMATS = {
    "npz": ("data.npz", write_npz),
    "compressed npz": ("data.npz", write_compressed),
    "hdf5": ("data.hdf5", write_hdf5),
    "csv": ("data.csv", write_csv),
    "parquet": ("data.parquet", write_parquet),
}
