"""Atomic, checksummed checkpoints of pytrees.

A checkpoint is a folder with `arrays.safetensors` and `manifest.json`. It is written under a temporary name, synced
and renamed, so a kill at any moment leaves the old or the new checkpoint. The checksums in the manifest detect damage.
(Orbax was tested: it loads a flipped bit silently and does not fall back from a truncated step.)
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import safetensors.numpy

from drol.decoding import convert, entries, read_json
from drol.errors import InputError
from drol.formats import FORMATS, check_format
from drol.storage import recover_folder, replace_folder, write_synced, writing

Tree = TypeVar("Tree")

ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"
Manifest = entries(format=int, sha256=str, leaves=dict[str, Any], metadata=dict[str, Any], manifest_sha256=str)
STEP = re.compile("[0-9]{9,13}")


class DamagedCheckpoint(Exception):
    """A checkpoint is invalid; the message has the reason."""


def save_tree(folder: Path, tree: Any, metadata: Mapping[str, Any]) -> None:
    """Write a tree of arrays and JSON metadata as one checkpoint; after an `OSError` the old checkpoint remains."""
    leaves = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(tree)}
    arrays = safetensors.numpy.save(leaves)
    manifest = {
        "format": FORMATS["checkpoint"],
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
    """Return the metadata of a checkpoint."""
    return read_manifest(folder)["metadata"]


def load_tree(folder: Path, like: Tree, only: bool = True, finite: bool = False) -> Tree:
    """Load the arrays of a checkpoint into the structure of `like`; names, shapes and types must match.

    Args:
        folder: The checkpoint.
        like: The structure, with shapes and types.
        only: Whether to reject a checkpoint with further arrays.
        finite: Whether to reject NaN and infinite values.
    """
    try:
        leaves = safetensors.numpy.load(read_arrays(folder))
    except safetensors.SafetensorError as error:
        raise DamagedCheckpoint(f"{ARRAYS} cannot be read ({error})") from error
    expected = dict(named_leaves(like))
    odd = sorted(leaves.keys() ^ expected.keys() if only else expected.keys() - leaves.keys())
    if odd:
        raise DamagedCheckpoint(f"its arrays have another structure; {odd[0]} is only in one of them")
    for name, leaf in expected.items():
        found = leaves[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise DamagedCheckpoint(
                f"{name} is {found.dtype}{list(found.shape)} where {leaf.dtype}{list(leaf.shape)} is expected"
            )
        if finite and found.dtype.kind == "f" and not np.isfinite(found).all():
            raise DamagedCheckpoint(f"{name} has values that are not finite")
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.asarray(leaves[name]) for name in expected])


def newest_valid(folder: Path, like: Callable[[dict[str, Any]], Tree]) -> tuple[int, Tree | None, list[str]]:
    """Load the newest valid checkpoint with finite values from a folder of `<step>` folders.

    Args:
        folder: The folder of checkpoints.
        like: Returns the expected structure, given the metadata of a checkpoint.

    Returns:
        Its step and its tree (0 and None if there is none), and a sentence for each damaged checkpoint that was
        skipped.
    """
    finish_replacements(folder)
    skipped = []
    for step in reversed(named_steps(folder)):
        try:
            saved = folder / step_name(step)
            return step, load_tree(saved, like(read_metadata(saved)), finite=True), skipped
        except DamagedCheckpoint as error:
            skipped.append(f"skipped the checkpoint of step {step}: {error}")
    return 0, None, skipped


def saved_steps(folder: Path) -> list[int]:
    """Return the sorted steps of all checkpoints in a folder; links and files are ignored."""
    saved = {step: folder / step_name(step) for step in named_steps(folder)}
    return [step for step, path in saved.items() if path.is_dir() and not path.is_symlink()]


def named_steps(folder: Path) -> list[int]:
    """Return the sorted steps of all entries of a folder that have the name of a step; other names are ignored."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if STEP.fullmatch(name) and step_name(int(name)) == name)


def finish_replacements(folder: Path) -> None:
    """Restore checkpoints whose replacement was interrupted by a kill."""
    for old in folder.glob(".*.old") if folder.is_dir() else ():
        recover_folder(folder / old.name.removeprefix(".").removesuffix(".old"))


def step_name(step: int) -> str:
    """Return the name of the folder of a step."""
    return f"{step:09d}"


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a tree with their paths, such as `states/actor/network/layers/0/kernel`."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in paths]


def read_arrays(folder: Path) -> bytes:
    """Return the content of the array file of a checkpoint after a check of its checksum."""
    manifest = read_manifest(folder)
    try:
        arrays = (folder / ARRAYS).read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(f"{ARRAYS} cannot be read ({error.strerror})") from error
    if hashlib.sha256(arrays).hexdigest() != manifest["sha256"]:
        raise DamagedCheckpoint(f"{ARRAYS} does not match its checksum")
    return arrays


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint and check its checksum, its format and the types of its entries.

    A format of a newer drol raises `InputError` and not `DamagedCheckpoint`, so that no older checkpoint is loaded
    instead.
    """
    path = folder / MANIFEST
    try:
        content = read_json(path, dict[str, Any], nan=True)  # the metadata may have NaN metrics
        right = content.get("manifest_sha256") == manifest_digest(content)
    except (OSError, InputError, RecursionError) as error:
        raise DamagedCheckpoint(f"{MANIFEST} cannot be read ({error})") from error
    if not right:
        raise DamagedCheckpoint(f"{MANIFEST} does not match its checksum")
    if type(content.get("format")) is int:
        check_format("checkpoint", path, content["format"])
    try:
        return convert(content, Manifest)
    except InputError as error:
        raise DamagedCheckpoint(f"{MANIFEST}: {error}") from error


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of all entries of a manifest except the checksum itself."""
    content = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
