"""`jax.jit` with XLA options that were measured to be faster on CPUs."""

import functools
from collections.abc import Callable
from typing import Any

import jax

# XLA's newer library of CPU kernels (YNN) runs single-precision products slower than the older library: one update at
# the paper's size took 110 ms with it and 85 ms without. By default XLA also uses only half of the vector width of
# AVX-512; with the full width an update takes 0.96 of the time (docs/performance.md). Nothing was measured on other
# platforms, so they use XLA's defaults.
WANTED = {"cpu": {"xla_cpu_experimental_ynn_fusion_type": "", "xla_cpu_prefer_vector_width": "512"}}


@functools.cache
def compiler_options() -> dict[str, str]:
    """Return the wanted options that this version of XLA supports on this platform."""
    known = {}
    for name, value in WANTED.get(jax.default_backend(), {}).items():
        try:
            jax.jit(lambda x: x, compiler_options={name: value}).lower(0.0).compile()
        except jax.errors.JaxRuntimeError:
            continue
        known[name] = value
    return known


def fast_jit(**jit_options: Any) -> Callable[[Callable], Callable]:
    """Return a decorator: `jax.jit` with the compiler options above, which are looked up at the first call."""

    def decorate(function: Callable) -> Callable:
        @functools.cache
        def compiled() -> Callable:
            return jax.jit(function, compiler_options=compiler_options(), **jit_options)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return compiled()(*arguments, **named)

        return call

    return decorate
