"""One error for all simulators that are not installed."""

import sys

from drol.errors import InputError


def missing_package(benchmark: str, extra: str, error: ImportError) -> InputError:
    """Return the error for a package that the environments of a benchmark need and that cannot be imported.

    Args:
        benchmark: Whose environments they are, such as "OGBench".
        extra: The extra of drol that installs the package.
        error: What the import raised.
    """
    package = error.name.partition(".")[0] if error.name else str(error)
    need = f"{benchmark}'s environments need the package {package}"
    if sys.version_info >= (3, 13):  # ogbench needs labmaze, which has wheels up to Python 3.12
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return InputError(
            f"{need}; they cannot be installed by pip on Python {version} (labmaze has no wheel for it): "
            "use Python 3.11 or 3.12, or ./run of a checkout"
        )
    return InputError(f"{need}; install them with: pip install 'drol[{extra}]'")
