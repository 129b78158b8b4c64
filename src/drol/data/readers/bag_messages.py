"""Read the messages of bags as numbers: ROS 2 (SQLite or MCAP) with rosbags, JSON in MCAP with mcap."""

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.readers.columns import ATTRIBUTE, IMAGE, NUMBERS, OTHER
from drol.errors import InputError

TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*/msg/[A-Za-z][A-Za-z0-9_]*")
INNER_TYPE = re.compile(r"^MSG: *(\S+)", re.MULTILINE)
FIXED_ARRAY = re.compile(r"^[ \t]*([\w/]+)(?:<=\d+)?\[(\d+)\]", re.MULTILINE)
IDL_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)  # strings and comments
IDL_ARRAY = re.compile(r"(\w+)\s+\w+\s*\[([^\]]*)\]")
PRIMITIVES = re.compile(r"bool|boolean|byte|char|octet|float\d*|double|long|short|u?int\d+")
MOST_ELEMENTS = 1 << 16  # of fixed arrays of texts or messages; rosbags generates code for each element
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
        return InputError(f"{self.path} is not a whole recording ({line or type(error).__name__}); record it again")

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
            for connection in reader.connections:
                text = connection.msgdef.data if connection.msgdef else ""
                for name in [connection.msgtype, *(f"{each}" for each in INNER_TYPE.findall(text))]:
                    self.check_type(name)
                self.check_size(connection.msgtype, text)
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

    def check_size(self, name: str, text: str) -> None:
        """Raise `InputError` for a definition from which rosbags would generate too much code."""
        plain = IDL_TEXT.sub("", text)
        is_idl = "module " in plain
        found = IDL_ARRAY.findall(plain) if is_idl else FIXED_ARRAY.findall(text)
        lengths = [length.strip() for inner, length in found if not PRIMITIVES.fullmatch(inner)]
        unclear = is_idl and ("<<" in plain or not all(map(str.isdecimal, lengths)))
        if unclear or any(len(length) > 9 for length in lengths) or sum(map(int, lengths)) > MOST_ELEMENTS:
            raise InputError(
                f"{self.path}: the definition of {name[:60]} has fixed arrays of more than {MOST_ELEMENTS:,} texts or "
                "messages; record the topic with arrays of any length"
            )

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
                    yield channel.topic, message.log_time, flatten(json.loads(message.data))
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
    return Value(NONE, kind=OTHER, why="its numbers cannot be read")


def as_numbers(value: Any) -> np.ndarray | None:
    """Return a number or a short list of numbers as an array; None for anything else."""
    if isinstance(value, bool | int | float | np.generic):
        return np.asarray(value, np.float64)
    if isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value) if len(value) <= LARGEST_ARRAY else None
        if array is not None and array.dtype.kind in "biuf" and array.ndim == 1 and array.size:
            return array.astype(np.float64)
    return None
