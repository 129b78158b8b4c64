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

# The same examples in every run: what passes here passes elsewhere. `--hypothesis-profile default` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")

# Tests start many processes. Without compiled modules each of them would spend two seconds on compiling its imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
