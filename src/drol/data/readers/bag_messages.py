"""Read the messages of bags as numbers: ROS 2 (SQLite or MCAP) with rosbags, JSON in MCAP with mcap."""

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.columns import ATTRIBUTE, IMAGE, NUMBERS, OTHER
from drol.errors import InputError

TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*/msg/[A-Za-z][A-Za-z0-9_]*")
IDL_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)  # strings and comments
IDL_FILE = 80 * "=" + "\n"  # begins each file of a definition in IDL
MOST_ELEMENTS = 1 << 12  # elements of fixed arrays of texts or messages; rosbags generates code for each in about 1 ms
MOST_FIELDS = 1 << 12  # fields and constants of a definition, including its inner types
LONGEST_DEFINITION = 1 << 20  # characters
LATEST_TIME = 1 << 63  # nanoseconds; the time of a message must be earlier
LARGEST_ARRAY = 4096  # numbers in a field; longer fields are images or point clouds
DEEPEST = 6
DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AssertionError, AttributeError, EOFError, ArithmeticError, MemoryError,
    RuntimeError, struct.error,
)  # fmt: skip
OTHERS = ("rosbags", "mcap", "sqlite3", "lz4", "zstandard", "backports")  # packages that define their own errors


@dataclass(frozen=True)
class Value:
    """A field of a message: its numbers and their names."""

    numbers: np.ndarray  # [n], or [] for one number
    names: tuple[str, ...] = ()
    frame: str = ""
    kind: str = NUMBERS  # the type of its column
    why: str = ""  # the reason if it holds no usable numbers


NONE = np.zeros(0)
SKIPPED = {"header": "steps are aligned by the time of receipt", "layout": "it says how an array is laid out"}


class Bag:
    """A context that opens a recording and converts errors about its content to `InputError`."""

    def __init__(self, path: Path):
        self.path, self.stack = path, ExitStack()
        self.reader: Any = None
        self.topics: dict[str, int] = {}  # readable topics, with their numbers of messages
        self.unread: dict[str, str] = {}  # unreadable topics, with the reasons

    def __enter__(self) -> "Bag":
        try:
            self.open()
        except ImportError as error:
            raise InputError(f"bags need {error.name}; install it with: pip install 'drol[ros]'") from error
        except InputError:
            raise
        except Exception as error:  # rosbags and mcap define many error types
            raise self.refusal(error) from error
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self.stack.close()
        own = error is not None and type(error).__module__.split(".")[0] in OTHERS
        if error is not None and not isinstance(error, InputError) and (own or isinstance(error, DAMAGE)):
            raise self.refusal(error) from error

    def refusal(self, error: BaseException) -> InputError:
        line = " ".join(str(error).split())[:200]
        return InputError(f"{self.path} is not a valid recording ({line or type(error).__name__}); record it again")

    def open(self) -> None:
        """Find the topics; check the definitions of messages before rosbags generates Python code from them."""
        self.encodings = self.read_encodings()
        if "json" in self.encodings.values():
            self.topics = dict.fromkeys((topic for topic, kind in self.encodings.items() if kind == "json"), 0)
            self.unread = {topic: f"is written as {kind}" for topic, kind in self.encodings.items() if kind != "json"}
            return
        from rosbags.highlevel import AnyReader
        from rosbags.rosbag2 import Reader
        from rosbags.typesys import Stores, get_typestore

        with Reader(self.path) as reader:
            self.check_definitions(reader.connections)
        self.reader = self.stack.enter_context(
            AnyReader([self.path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
        )
        for connection in self.reader.connections:
            self.topics[connection.topic] = self.topics.get(connection.topic, 0) + connection.msgcount

    def check_type(self, name: str) -> None:
        """Raise `InputError` unless a name is a valid ROS 2 type, since rosbags generates Python code from it."""
        parts = name.split("/")
        full = name if len(parts) == 3 else "/msg/".join(parts) if len(parts) == 2 else name
        if not TYPE.fullmatch(full):
            raise InputError(f"{self.path} has messages of the type {name[:60]!r}, which is no type of ROS 2")

    def check_definitions(self, connections: Sequence[Any]) -> None:
        """Raise `InputError` for two definitions of one type, and for types that would need too much code."""
        from rosbags.interfaces import Nodetype

        types: dict[str, Sequence[Any]] = {}
        for connection in connections:
            self.check_type(connection.msgtype)
            found = self.parse(connection)
            for name, (_, members) in found.items():
                self.check_type(name)
                if types.setdefault(name, members) != members:
                    raise InputError(
                        f"{self.path} has two definitions of {name}, but only one could be used; record them apart"
                    )
            if sum(len(constants) + len(members) for constants, members in found.values()) > MOST_FIELDS:
                raise InputError(
                    f"{self.path}: the definition of {connection.msgtype} has more than {MOST_FIELDS:,} fields and "
                    "constants; record the topic with an array in place of fields"
                )
        kinds = [kind for members in types.values() for _, kind in members if kind[0] == Nodetype.ARRAY]
        lengths = [length for _, (inner, length) in kinds if inner[0] != Nodetype.BASE or inner[1][0] == "string"]
        if sum(lengths) > MOST_ELEMENTS:
            raise InputError(
                f"{self.path}: the definitions of messages have fixed arrays of more than {MOST_ELEMENTS:,} texts or "
                "messages; record the topics with arrays of any length"
            )

    def parse(self, connection: Any) -> Mapping[str, Any]:
        """Return the types in the definition of a connection; raise `InputError` if it is too large to parse."""
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.typesys import get_types_from_idl, get_types_from_msg

        kind, text = connection.msgdef
        if len(text) > LONGEST_DEFINITION or (kind == MessageDefinitionFormat.IDL and "<<" in IDL_TEXT.sub("", text)):
            raise InputError(
                f"{self.path}: the definition of {connection.msgtype} has more than {LONGEST_DEFINITION:,} characters, "
                "or computes numbers with <<; write it shorter, with the numbers themselves"
            )
        if kind == MessageDefinitionFormat.MSG:
            return get_types_from_msg(text, connection.msgtype)
        files = text.split(IDL_FILE) if kind == MessageDefinitionFormat.IDL else []
        texts = [each.partition("\n")[2] for each in files[1:]] if text.startswith(f"{IDL_FILE}IDL: ") else files[:1]
        return {name: found for each in texts for name, found in get_types_from_idl(each).items()}

    def read_encodings(self) -> dict[str, str]:
        """Return the message encoding of each topic of an MCAP file; an empty dict for other files."""
        if self.path.suffix.lower() != ".mcap":
            return {}
        from mcap.reader import make_reader

        with self.path.open("rb") as file:
            summary = make_reader(file).get_summary()
        channels = summary.channels.values() if summary else ()
        return {channel.topic: channel.message_encoding for channel in channels}

    def messages(self, topics: Sequence[str]) -> Iterator[tuple[str, int, Mapping[str, Value]]]:
        """Yield the topic, the time of receipt in nanoseconds, and the fields of each message, in order of time."""
        if self.reader is None:
            from mcap.reader import make_reader

            with self.path.open("rb") as file:
                for _, channel, message in make_reader(file, validate_crcs=True).iter_messages(topics=list(topics)):
                    self.check_time(channel.topic, message.log_time)
                    yield channel.topic, message.log_time, flatten(json.loads(message.data, object_pairs_hook=unique))
            return
        chosen = [connection for connection in self.reader.connections if connection.topic in topics]
        for connection, time, raw in self.reader.messages(connections=chosen):
            self.check_time(connection.topic, time)
            yield connection.topic, time, flatten(self.reader.deserialize(raw, connection.msgtype))

    def check_time(self, topic: str, time: int) -> None:
        """Raise `InputError` for a time outside the valid range."""
        if not 0 <= time < LATEST_TIME:
            raise InputError(f"{self.path}: a message of {topic} has the time {time} ns; it must be from 0 to 2^63 - 1")

    def first_messages(self) -> dict[str, Mapping[str, Value]]:
        """Return the first message of each readable topic; move the other topics to `unread`."""
        found = {}
        for topic in list(self.topics):
            try:
                found[topic] = next((each for _, _, each in self.messages([topic])), {})
            except InputError:
                raise
            except Exception as error:
                self.unread[topic] = " ".join(str(error).split())[:80] or type(error).__name__
                del self.topics[topic]
        return found


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; raise `ValueError` if a name occurs twice, since one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"a message has two values of {twice[:40]!r}")
    return found


def flatten(message: Any, prefix: str = "", depth: int = 0) -> dict[str, Value]:
    """Return the fields of a message by name; the values of texts, images and point clouds are not kept."""
    found: dict[str, Value] = {}
    if depth > DEEPEST:
        return found
    if is_dataclass(message) and not isinstance(message, type):
        items = {each.name: getattr(message, each.name) for each in fields(message) if not each.name.startswith("_")}
    else:
        items = message if isinstance(message, Mapping) else {"": message}
    header = items.get("header")
    frame = getattr(header, "frame_id", None) if not isinstance(header, Mapping) else header.get("frame_id")
    labels = items.get("name")
    for name, value in items.items():
        path = f"{prefix}/{name}" if prefix and name else prefix or str(name)
        if name in SKIPPED:
            new = {path: Value(NONE, kind=ATTRIBUTE, why=SKIPPED[name])}
        elif is_dataclass(value) or isinstance(value, Mapping):
            new = flatten(value, path, depth + 1)
        else:
            new = {path: read_value(value, labels)}
        twice = sorted(found.keys() & new.keys())
        if twice:
            raise ValueError(f"two fields of its messages are called {twice[0]!r}")
        found |= new
    if isinstance(frame, str) and frame:
        found = {name: replace(each, frame=each.frame or frame) for name, each in found.items()}
    return found


def read_value(value: Any, labels: Any) -> Value:
    """Return the numbers of a field without subfields and their labels, or the reason why it has no numbers."""
    numbers = as_numbers(value)
    if numbers is not None:
        fitting = labels if isinstance(labels, list) and numbers.shape == (len(labels),) else []
        return Value(numbers, tuple(str(label) for label in fitting))
    if isinstance(value, list | tuple | np.ndarray) and len(value) > LARGEST_ARRAY:
        return Value(NONE, kind=IMAGE, why=f"it holds more than {LARGEST_ARRAY:,} numbers")
    is_list = isinstance(value, list | tuple | np.ndarray)
    if value is None or isinstance(value, str | bytes) or (is_list and all(isinstance(each, str) for each in value)):
        return Value(NONE, kind=ATTRIBUTE, why="it holds no numbers")
    return Value(NONE, kind=OTHER, why="its values are too large, or not one list of numbers")


def as_numbers(value: Any) -> np.ndarray | None:
    """Return a number or a short list of numbers as an array; None for anything else."""
    if isinstance(value, bool | int | float | np.generic):
        with suppress(OverflowError):  # the integer exceeds the largest float
            return np.asarray(value, np.float64)
    if isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value) if len(value) <= LARGEST_ARRAY else None
        if array is not None and array.dtype.kind in "biuf" and array.ndim == 1 and array.size:
            return array.astype(np.float64)
    return None
