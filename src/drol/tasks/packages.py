"""The error for simulators that are not installed."""

import sys

from drol.errors import InputError


def missing_package(benchmark: str, extra: str, error: ImportError) -> InputError:
    """Return the error for a failed import of a package that the environments of a benchmark need.

    Args:
        benchmark: The benchmark, such as "OGBench".
        extra: The extra of drol that installs the package.
        error: The error of the import.
    """
    package = error.name.partition(".")[0] if error.name else str(error)
    need = f"{benchmark}'s environments need the package {package}"
    install = f"pip install 'drol[{extra}]'"
    if sys.version_info >= (3, 13):  # labmaze, an unused dependency of ogbench, has no wheel for these Python versions
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        install += " && pip install --no-deps ogbench 'dm-control<1.0.45'"
        return InputError(f"{need}; install them on Python {version} with: {install}, or use ./run of a checkout")
    return InputError(f"{need}; install them with: {install}")
