import os
import sys
from pathlib import Path

# Programs of tests run for less time than XLA optimises them: without its optimisations the update of a small DROL
# compiles in a tenth of the time. `XLA_FLAGS= ./run test` compiles as users do.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false",
)

# All tests, the commands that they call and the processes that they start share one cache of compiled programs.
# Set before jax is imported; a folder that was chosen outside is respected.
os.environ.setdefault("DROL_CACHE_DIR", str(Path(__file__).parents[1] / ".cache"))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.environ["DROL_CACHE_DIR"] + "/jax")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

import hypothesis
import jax
import pytest

# The same examples in every run: what passes here passes elsewhere. `--hypothesis-profile default` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

# Tests start many processes. Without compiled modules each of them would spend two seconds on compiling its imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Tests that train, compile much, start many processes or open a browser: `./run test --quick` leaves them out.
SLOW = (
    "algorithms/beyond/",
    "cli/data/test_show.py",
    "cli/test_demo.py",
    "cli/test_evaluate.py",
    "cli/test_export.py",
    "cli/test_train.py",
    "contract/",
    "data/test_on_disk.py",
    "data/test_replay.py",
    "evaluation/",
    "export/",
    "jobs/",
    "learning/",
    "reference/",
    "reports/",
    "reproduction/",
    "runtime/",
    "storm/",
    "tasks/",
    "test_examples.py",
    "test_own_data.py",
    "test_stored.py",
    "tracking/",
    "training/",
    "website/",
)


@pytest.fixture(scope="module", autouse=True)
def few_programs_in_memory():
    """Forget compiled programs once they take gigabytes; modules after that load theirs from the cache again."""
    yield
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    if pages * os.sysconf("SC_PAGE_SIZE") > 2e9:
        jax.clear_caches()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark these tests as slow and run them first, so that no worker waits for a long file that started last."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).as_posix().startswith(SLOW):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
