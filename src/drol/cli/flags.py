"""A parser with one-line errors, and flags generated from the fields of a dataclass."""

import argparse
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from drol.cli import IMPORTED
from drol.errors import InputError, similar_name
from drol.jobs import EXECUTORS, OPTIONS, RETRIES, make_executor
from drol.jobs.job import Executor


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `InputError` and suggests the nearest flag for an unknown one."""

    def __init__(self, prog: str, description: str = "", epilog: str | None = None, add_help: bool = True):
        super().__init__(
            prog=f"drol {prog}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=add_help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see `{self.prog} --help`)")

    def parse(self, arguments: list[str], elsewhere: Mapping[str, Sequence[str]] | None = None) -> argparse.Namespace:
        """Parse a command line.

        Args:
            arguments: The words after the command.
            elsewhere: Flags that only other algorithms have, with the names of these algorithms.
        """
        for argument in arguments:
            if "\0" in argument:
                self.error(f"{argument!r} has a NUL byte; remove it")
            if not argument or re.fullmatch("--[a-z-]+=", argument):
                self.error(f"empty value for {argument.rstrip('=') or 'an argument'} (unset shell variable?)")
        parsed, unknown = self.parse_known_args(arguments)
        for flag in unknown:
            known = [option for action in self._actions for option in action.option_strings]
            name = flag.split("=")[0]
            if owners := (elsewhere or {}).get(name):
                self.error(f"{name} is a hyperparameter of {', '.join(owners)}; add --algorithm with one of them")
            similar = similar_name(name, known)
            self.error(f"unknown argument {flag!r}" + (f"; did you mean {similar}?" if similar else ""))
        return parsed


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)  # 1e6
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def add_fields(
    parser: argparse._ArgumentGroup, fields: Iterable[dataclasses.Field], defaults: Mapping[str, Any] | None = None
) -> None:
    """Add a flag for each field that has a description; the parsed result contains only flags that were given.

    Args:
        parser: The group of the flags.
        fields: The fields.
        defaults: The values that the help text shows as defaults, by name of a field; otherwise those of the fields.
    """
    for field in fields:
        if "description" not in field.metadata:
            continue
        default = field.default
        options: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS}
        shown = (defaults or {}).get(field.name, default)
        shown = (" ".join(map(str, shown)) or "none") if isinstance(shown, tuple) else shown
        options["help"] = field.metadata["description"].replace("%", "%%") + f" (default: {shown})"
        if isinstance(default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, tuple):
            options |= {"type": whole_number, "nargs": "+", "metavar": "N"}
        elif isinstance(default, int):
            options |= {"type": whole_number, "metavar": "N"}
        elif isinstance(default, float):
            options |= {"type": number, "metavar": "X"}
        elif field.metadata.get("choices"):
            options["choices"] = field.metadata["choices"]
        else:
            options["metavar"] = "PATH"
        parser.add_argument(field.metadata.get("flag", f"--{field.name.replace('_', '-')}"), **options)


def given(parsed: argparse.Namespace, fields: Iterable[dataclasses.Field]) -> dict[str, Any]:
    """Return the fields that were given as flags."""
    values = vars(parsed)
    return {
        field.name: tuple(values[field.name]) if isinstance(values[field.name], list) else values[field.name]
        for field in fields
        if field.name in values
    }


def add_executor_flags(parser: Parser) -> None:
    """Add the flags of commands that execute many runs."""
    names = ", ".join(EXECUTORS)
    parser.add_argument(
        "--executor", default="local", metavar="NAME", help=f"where the runs execute: {names} (default: local)"
    )
    parser.add_argument(
        "--processes",
        type=whole_number,
        metavar="N",
        help="parallel runs, if memory allows (default: one per core; on a cluster, as many as it accepts)",
    )
    parser.add_argument("--cores", type=whole_number, metavar="N", help="cores per run on a cluster (default: 1)")
    parser.add_argument("--gpus", type=number, metavar="X", help="ray: GPUs per run, such as 0.25 (default: none)")
    parser.add_argument(
        "--address",
        help="with ray: address of the cluster; auto: the one on this machine (default: RAY_ADDRESS, or a new one)",
    )
    parser.add_argument(
        "--sbatch", metavar="FLAGS", help="slurm: flags for sbatch as one argument: --sbatch='--account=lab'"
    )
    parser.add_argument(
        "--retries",
        type=whole_number,
        default=RETRIES,
        metavar="N",
        help=f"further attempts for a run that fails (default: {RETRIES})",
    )


def executor_from(parsed: argparse.Namespace) -> tuple[Executor, tuple[str, ...]]:
    """Return the executor of a command line, and the modules that its runs import."""
    options = {name: getattr(parsed, name) for name in OPTIONS}
    return make_executor(parsed.executor, parsed.processes, parsed.retries, **options), tuple(IMPORTED)
