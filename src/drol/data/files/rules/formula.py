"""A formula over named columns, such as `-norm(gripper - goal) - 0.01 * abs(torque)`.

The text is parsed and every part of it is looked up in a short list; nothing of it is run as code. Every value is an
array [steps, n]: a column of one number has n = 1, and the formula as a whole must, too.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drol.errors import InputError

LONGEST = 2000  # letters
DEEPEST = 50
LARGEST_POWER = 64

Values = Mapping[str, np.ndarray]

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: np.power,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.And: np.logical_and, ast.Or: np.logical_or,
}  # fmt: skip
SIGNS: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: np.logical_not}
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # with the number of arguments; 0: two or more
    "abs": (1, np.abs), "sqrt": (1, np.sqrt), "exp": (1, np.exp), "log": (1, np.log), "sin": (1, np.sin),
    "cos": (1, np.cos), "tanh": (1, np.tanh), "sign": (1, np.sign), "min": (0, np.minimum), "max": (0, np.maximum),
    "norm": (1, lambda x: np.sqrt(np.sum(np.square(x), -1, keepdims=True))),
    "sum": (1, lambda x: np.sum(x, -1, keepdims=True)),
}  # fmt: skip
NEXT = "next"
ALLOWED = f"+ - * / **, comparisons, and, or, not, x if y else z, (x, y), {NEXT}(x), " + ", ".join(FUNCTIONS)


@dataclass(frozen=True)
class Formula:
    """A formula that was parsed."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]  # of columns, in the order in which they occur

    @classmethod
    def parse(cls, text: str) -> "Formula":
        """Return a formula; raise `InputError` for anything that is not on the list.

        Args:
            text: The formula. A column is given by its name, or in quotation marks if that is no plain word:
                `'obs/object'[2]`.
        """
        if len(text) > LONGEST:
            raise InputError(f"the formula has {len(text)} letters; at most {LONGEST} are read")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            what = error.msg if isinstance(error, SyntaxError) else error
            raise InputError(f"the formula {text!r} cannot be read ({what}); it may have {ALLOWED}") from error
        names: list[str] = []
        check(tree, names, text)
        if not names:
            raise InputError(f"the formula {text!r} names no column; it must be made of columns of the file")
        return cls(text.strip(), tree, tuple(dict.fromkeys(names)))

    @property
    def needs_next(self) -> bool:
        """Whether it looks at the row after a step."""
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return any(isinstance(call.func, ast.Name) and call.func.id == NEXT for call in calls)

    def evaluate(self, values: Values, following: Values) -> np.ndarray:
        """Return a number [steps] for each step.

        Args:
            values: The columns [steps, n] by name.
            following: The same columns in the row after each step; at the end of an episode, in its own.
        """
        with np.errstate(all="ignore"):  # what is not finite is refused like any other value, with its row
            result = np.asarray(compute(self.tree, values, following), np.float64)
        if result.ndim != 2 or result.shape[1] != 1:
            raise InputError(
                f"the formula {self.text!r} gives {result.shape[-1]} numbers for a step; use norm(...), sum(...) or "
                "one number of a column, such as position[0]"
            )
        return result[:, 0]


def column_name(node: ast.AST) -> str | None:
    """Return the column that a part of a formula names; None if it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute):
        inner = column_name(node.value)
        return inner and f"{inner}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        inner = column_name(node.value)
        return inner and f"{inner}[{node.slice.value}]"
    return None


def check(node: ast.AST, names: list[str], text: str, depth: int = 0) -> None:
    """Raise `InputError` for a part of a formula that is not allowed; add the columns that it names."""
    if depth > DEEPEST:
        raise InputError(f"the formula {text[:80]!r} is nested more than {DEEPEST} times; make it simpler")
    name = column_name(node)
    if name is not None:
        names.append(name)
        return
    parts = parts_of(node)
    if parts is None:
        raise InputError(f"the formula {text!r} has {ast.unparse(node)[:60]!r}, which is not allowed; use {ALLOWED}")
    for part in parts:
        check(part, names, text, depth + 1)


def parts_of(node: ast.AST) -> list[ast.expr] | None:
    """Return the parts that a part of a formula is made of; None if it is not allowed."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return [] if abs(value) < 1e30 else None
        case ast.BinOp(left, ast.Pow(), ast.Constant(value=int() | float() as power)):
            return [left] if abs(power) <= LARGEST_POWER else None
        case ast.BinOp(left, op, right) if type(op) in OPERATORS and not isinstance(op, ast.Pow):
            return [left, right]
        case ast.UnaryOp(op, operand) if type(op) in SIGNS:
            return [operand]
        case ast.BoolOp(op, values) if type(op) in OPERATORS:
            return list(values)
        case ast.Compare(left, [op], [right]) if type(op) in OPERATORS:
            return [left, right]
        case ast.IfExp(test, body, orelse):
            return [test, body, orelse]
        case ast.Tuple(elts) | ast.List(elts) if elts:
            return list(elts)
        case ast.Call(ast.Name(id=name), arguments, []) if name == NEXT or name in FUNCTIONS:
            count = 1 if name == NEXT else FUNCTIONS[name][0]
            right = len(arguments) == count if count else len(arguments) >= 2
            return list(arguments) if right else None
    return None


def compute(node: ast.AST, values: Values, following: Values) -> Any:
    """Return the value [steps, n] of a part of a formula that was checked."""
    name = column_name(node)
    if name is not None:
        return values[name]
    match node:
        case ast.Constant(value=value):
            return np.full((1, 1), float(value))  # pyright: ignore[reportArgumentType]  # checked
        case ast.BinOp(left, op, right):
            return join(OPERATORS[type(op)], compute(left, values, following), compute(right, values, following))
        case ast.Compare(left, [op], [right]):
            both = compute(left, values, following), compute(right, values, following)
            return join(OPERATORS[type(op)], *both).astype(np.float64)
        case ast.BoolOp(op, parts):
            result = compute(parts[0], values, following)
            for part in parts[1:]:
                result = join(OPERATORS[type(op)], result, compute(part, values, following))
            return np.asarray(result, np.float64)
        case ast.UnaryOp(op, operand):
            return np.asarray(SIGNS[type(op)](compute(operand, values, following)), np.float64)
        case ast.IfExp(test, body, orelse):
            condition = compute(test, values, following) != 0
            return np.where(condition, compute(body, values, following), compute(orelse, values, following))
        case ast.Tuple(parts) | ast.List(parts):
            arrays = [compute(part, values, following) for part in parts]
            rows = max(len(array) for array in arrays)
            return np.concatenate([np.broadcast_to(array, (rows, array.shape[1])) for array in arrays], -1)
        case ast.Call(ast.Name(id=function), arguments):
            if function == NEXT:
                return compute(arguments[0], following, following)
            first, *rest = (compute(argument, values, following) for argument in arguments)
            call = FUNCTIONS[function][1]
            if not rest:
                return call(first)
            for other in rest:
                first = join(call, first, other)
            return first
    raise AssertionError(ast.dump(node))


def join(function: Callable[[Any, Any], Any], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return a function of two values; raise `InputError` for vectors of different lengths."""
    if left.shape[1] != right.shape[1] and 1 not in (left.shape[1], right.shape[1]):
        raise InputError(f"the formula joins vectors of {left.shape[1]} and {right.shape[1]} numbers; give as many")
    return function(left, right)
