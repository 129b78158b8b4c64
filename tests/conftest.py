import os
from pathlib import Path

# Compiled programs are kept from one run of the tests to the next, and shared with the processes that tests start.
# Set before jax is imported; a folder that was chosen outside is respected.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

import hypothesis
import jax
import pytest

# The same examples in every run: what passes here passes elsewhere. `--hypothesis-profile default` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="module")
def quick_compile():
    """Compile faster what is run once; the numbers are the same to rounding, so none of it is left for other tests."""
    jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # for processes that a test starts
        yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()
