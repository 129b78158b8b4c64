"""Cache compiled programs on disk, so that a second start does not compile again."""

import os
from pathlib import Path

import jax


def cache_folder() -> Path:
    """Return `DROL_CACHE_DIR`, or `drol` in the user's private cache folder: jax executes cached programs unchecked."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drol"
    folder = Path(os.environ.get("DROL_CACHE_DIR") or default)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def keep_compiled_programs() -> None:
    """Enable jax's cache; without write access, programs are only compiled again."""
    try:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
    except OSError:
        return
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
