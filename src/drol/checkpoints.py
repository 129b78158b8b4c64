"""Trees of arrays on disk that are either whole or refused.

A checkpoint is a folder with `arrays.safetensors` and `manifest.json`. It is written under another name, synced and
renamed, so a kill at any moment leaves the old one or the new one; the manifest's checksums tell damage from data.
(Tried against orbax, which loads a flipped bit silently and does not fall back from a truncated step.)
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import safetensors.numpy

from drol.storage import recover_folder, replace_folder, write_synced, writing

Tree = TypeVar("Tree")

FORMAT = 1
ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"


class DamagedCheckpoint(Exception):
    """A checkpoint cannot be trusted; the message says why."""


def save_tree(folder: Path, tree: Any, metadata: Mapping[str, Any]) -> None:
    """Write a tree of arrays and some JSON as one checkpoint; an `OSError` leaves what was there before."""
    leaves = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(tree)}
    arrays = safetensors.numpy.save(leaves)
    manifest = {
        "format": FORMAT,
        "sha256": hashlib.sha256(arrays).hexdigest(),
        "leaves": {name: [array.dtype.str, list(array.shape)] for name, array in leaves.items()},
        "metadata": dict(metadata),
    }
    manifest["manifest_sha256"] = manifest_digest(manifest)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with writing(folder):
        try:
            partial.mkdir(parents=True)
            write_synced(partial / ARRAYS, arrays)
            write_synced(partial / MANIFEST, json.dumps(manifest).encode())
            replace_folder(partial, folder)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the JSON that was saved with a checkpoint."""
    return read_manifest(folder)["metadata"]


def load_tree(folder: Path, like: Tree, only: bool = True) -> Tree:
    """Load the arrays of a checkpoint into the structure of `like`; names, shapes and types must be the same.

    Args:
        folder: The checkpoint.
        like: The structure, with shapes and types.
        only: Whether to refuse a checkpoint that has further arrays, too.
    """
    manifest = read_manifest(folder)
    try:
        arrays = (folder / ARRAYS).read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(f"{ARRAYS} cannot be read ({error.strerror})") from error
    if hashlib.sha256(arrays).hexdigest() != manifest["sha256"]:
        raise DamagedCheckpoint(f"{ARRAYS} does not match its checksum")
    leaves = safetensors.numpy.load(arrays)
    expected = dict(named_leaves(like))
    odd = sorted(leaves.keys() ^ expected.keys() if only else expected.keys() - leaves.keys())
    if odd:
        raise DamagedCheckpoint(f"its arrays are of another structure; {odd[0]} is only on one side")
    for name, leaf in expected.items():
        found = leaves[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise DamagedCheckpoint(
                f"{name} is {found.dtype}{list(found.shape)} where {leaf.dtype}{list(leaf.shape)} is expected"
            )
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.asarray(leaves[name]) for name in expected])


def newest_valid(folder: Path, like: Callable[[dict[str, Any]], Tree]) -> tuple[int, Tree | None, list[str]]:
    """Load the newest whole checkpoint of a folder of `<step>` folders.

    Args:
        folder: The folder of checkpoints.
        like: Returns the expected structure, given the metadata of a checkpoint.

    Returns:
        Its step and its tree (0 and None if there is none), and a line for each damaged checkpoint that was skipped.
    """
    finish_replacements(folder)
    skipped = []
    for step in sorted(saved_steps(folder), reverse=True):
        try:
            saved = folder / step_name(step)
            return step, load_tree(saved, like(read_metadata(saved))), skipped
        except DamagedCheckpoint as error:
            skipped.append(f"skipped the checkpoint of step {step}: {error}")
    return 0, None, skipped


def saved_steps(folder: Path) -> list[int]:
    """Return the steps of all checkpoints in a folder, in order."""
    if not folder.is_dir():
        return []
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def finish_replacements(folder: Path) -> None:
    """Give checkpoints their names back that a kill in the middle of a replacement left without."""
    for old in folder.glob(".*.old") if folder.is_dir() else ():
        recover_folder(folder / old.name.removeprefix(".").removesuffix(".old"))


def step_name(step: int) -> str:
    """Return the name of the folder of a step."""
    return f"{step:09d}"


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a tree with their paths, such as `states/actor/network/layers/0/kernel`."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in paths]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint and check it against its own checksum."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(f"{MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("manifest_sha256") != manifest_digest(manifest):
        raise DamagedCheckpoint(f"{MANIFEST} does not match its checksum")
    if manifest["format"] != FORMAT:
        raise DamagedCheckpoint(f"its format is {manifest['format']}; this version reads {FORMAT}")
    return manifest


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of everything in a manifest but the checksum itself."""
    content = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
