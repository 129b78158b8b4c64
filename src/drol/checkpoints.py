"""Trees of arrays on disk that are either whole or refused.

A checkpoint is a folder with `arrays.safetensors` and `manifest.json`. It is written under another name, synced and
renamed, so a kill at any moment leaves the old one or the new one; the manifest's checksums tell damage from data.
(Tried against orbax, which loads a flipped bit silently and does not fall back from a truncated step.)
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

from drol import formats
from drol.storage import recover_folder, replace_folder, write_synced, writing

Tree = TypeVar("Tree")

ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"
STEP = re.compile("[0-9]{9,13}")
ENTRIES = {"format": int, "sha256": str, "leaves": dict, "metadata": dict}  # of a manifest, besides its checksum


class DamagedCheckpoint(Exception):
    """A checkpoint cannot be trusted; the message says why."""


def save_tree(folder: Path, tree: Any, metadata: Mapping[str, Any]) -> None:
    """Write a tree of arrays and some JSON as one checkpoint; an `OSError` leaves what was there before."""
    leaves = {name: np.asarray(leaf, order="C") for name, leaf in named_leaves(tree)}
    arrays = safetensors.numpy.save(leaves)
    manifest = {
        "format": formats.WRITTEN["checkpoint"],
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


def load_tree(folder: Path, like: Tree, only: bool = True, finite: bool = False) -> Tree:
    """Load the arrays of a checkpoint into the structure of `like`; names, shapes and types must be the same.

    Args:
        folder: The checkpoint.
        like: The structure, with shapes and types.
        only: Whether to refuse a checkpoint that has further arrays, too.
        finite: Whether to refuse values that are NaN or infinite.
    """
    try:
        leaves = safetensors.numpy.load(read_arrays(folder))
    except safetensors.SafetensorError as error:
        raise DamagedCheckpoint(f"{ARRAYS} cannot be read ({error})") from error
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
        if finite and found.dtype.kind == "f" and not np.isfinite(found).all():
            raise DamagedCheckpoint(f"{name} has values that are not finite")
    return jax.tree.unflatten(jax.tree.structure(like), [jax.numpy.asarray(leaves[name]) for name in expected])


def newest_valid(folder: Path, like: Callable[[dict[str, Any]], Tree]) -> tuple[int, Tree | None, list[str]]:
    """Load the newest checkpoint that is whole and finite of a folder of `<step>` folders.

    Args:
        folder: The folder of checkpoints.
        like: Returns the expected structure, given the metadata of a checkpoint.

    Returns:
        Its step and its tree (0 and None if there is none), and a line for each damaged checkpoint that was skipped.
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
    """Return the steps of all checkpoints in a folder, in order; links and what is no folder are left out."""
    saved = {step: folder / step_name(step) for step in named_steps(folder)}
    return [step for step, path in saved.items() if path.is_dir() and not path.is_symlink()]


def named_steps(folder: Path) -> list[int]:
    """Return the steps that something in a folder is named for, in order; names that we never give are ignored."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if STEP.fullmatch(name) and step_name(int(name)) == name)


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


def read_arrays(folder: Path) -> bytes:
    """Return the file of the arrays of a checkpoint, which its checksum confirms."""
    manifest = read_manifest(folder)
    try:
        arrays = (folder / ARRAYS).read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(f"{ARRAYS} cannot be read ({error.strerror})") from error
    if hashlib.sha256(arrays).hexdigest() != manifest["sha256"]:
        raise DamagedCheckpoint(f"{ARRAYS} does not match its checksum")
    return arrays


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint and check it against its own checksum, its format and the types of its entries.

    A format that only a newer drol reads is no damage: it raises `InputError`, so that nothing older takes its place.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        whole = isinstance(manifest, dict) and manifest.get("manifest_sha256") == manifest_digest(manifest)
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedCheckpoint(f"{MANIFEST} cannot be read ({error})") from error
    if not whole:
        raise DamagedCheckpoint(f"{MANIFEST} does not match its checksum")
    for name, kind in ENTRIES.items():
        if type(manifest.get(name)) is not kind:
            raise DamagedCheckpoint(f"{MANIFEST} lacks {name!r} or has something else in its place")
    formats.check_format("checkpoint", folder / MANIFEST, manifest["format"])
    return manifest


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of everything in a manifest but the checksum itself."""
    content = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
