"""Messages of bags as plain numbers: ROS 2 (SQLite or MCAP) by rosbags, JSON in MCAP by mcap."""

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from drol.errors import InputError

TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*/msg/[A-Za-z][A-Za-z0-9_]*")
INNER_TYPE = re.compile(r"^MSG: *(\S+)", re.MULTILINE)
LARGEST_ARRAY = 4096  # numbers of a field; more is an image or a cloud of points
DEEPEST = 6
DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AssertionError, AttributeError, EOFError, ArithmeticError, MemoryError,
    RuntimeError, struct.error,
)  # fmt: skip
OTHERS = ("rosbags", "mcap", "sqlite3", "lz4", "zstandard", "backports")  # packages that raise errors of their own


@dataclass(frozen=True)
class Value:
    """A field of a message: its numbers, and what the message calls them."""

    numbers: np.ndarray  # [n], or [] for one number
    names: tuple[str, ...] = ()
    frame: str = ""
    why: str = ""  # it holds no numbers that can be used


NONE = np.zeros(0)
SKIPPED = {"header": "steps are aligned by the time of receipt", "layout": "it says how an array is laid out"}


class Bag:
    """A recording that is open; whatever is wrong with it becomes an `InputError`."""

    def __init__(self, path: Path):
        self.path, self.stack = path, ExitStack()
        self.reader: Any = None
        self.topics: dict[str, int] = {}  # that can be read, with their numbers of messages
        self.unread: dict[str, str] = {}  # topics that cannot be read, and why

    def __enter__(self) -> "Bag":
        try:
            self.open()
        except ImportError as error:
            raise InputError(f"bags need {error.name}; install it with: pip install 'drol[ros]'") from error
        except InputError:
            raise
        except Exception as error:  # rosbags and mcap have many of their own
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
        """Find the topics; definitions of messages are looked at before rosbags makes Python code of them."""
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
        self.reader = self.stack.enter_context(
            AnyReader([self.path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
        )
        for connection in self.reader.connections:
            self.topics[connection.topic] = self.topics.get(connection.topic, 0) + connection.msgcount

    def check_type(self, name: str) -> None:
        """Raise `InputError` for a type that no message of ROS has: rosbags makes Python code of such names."""
        parts = name.split("/")
        full = name if len(parts) == 3 else "/msg/".join(parts) if len(parts) == 2 else name
        if not TYPE.fullmatch(full):
            raise InputError(f"{self.path} has messages of the type {name[:60]!r}, which is no type of ROS 2")

    def read_encodings(self) -> dict[str, str]:
        """Return how the messages of each topic of an MCAP file are written; nothing for other files."""
        if self.path.suffix.lower() != ".mcap":
            return {}
        from mcap.reader import make_reader

        with self.path.open("rb") as file:
            summary = make_reader(file).get_summary()
        channels = summary.channels.values() if summary else ()
        return {channel.topic: channel.message_encoding for channel in channels}

    def messages(self, topics: Sequence[str]) -> Iterator[tuple[str, int, Mapping[str, Value]]]:
        """Yield topic, time of receipt in nanoseconds, and fields of each message, in the order of time."""
        if self.reader is None:
            from mcap.reader import make_reader

            with self.path.open("rb") as file:
                for _, channel, message in make_reader(file, validate_crcs=True).iter_messages(topics=list(topics)):
                    yield channel.topic, message.log_time, flatten(json.loads(message.data))
            return
        chosen = [connection for connection in self.reader.connections if connection.topic in topics]
        for connection, time, raw in self.reader.messages(connections=chosen):
            yield connection.topic, time, flatten(self.reader.deserialize(raw, connection.msgtype))

    def first_messages(self) -> dict[str, Mapping[str, Value]]:
        """Return the first message of each topic that can be read."""
        found = {}
        for topic in list(self.topics):
            try:
                found[topic] = next((each for _, _, each in self.messages([topic])), {})
            except Exception as error:
                self.unread[topic] = " ".join(str(error).split())[:80] or type(error).__name__
                del self.topics[topic]
        return found


def flatten(message: Any, prefix: str = "", depth: int = 0) -> dict[str, Value]:
    """Return the fields of a message by name; texts, images and clouds of points are only named."""
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
            found[path] = Value(NONE, why=SKIPPED[name])
            continue
        if is_dataclass(value) or isinstance(value, Mapping):
            found |= flatten(value, path, depth + 1)
            continue
        numbers = as_numbers(value)
        if numbers is not None:
            fitting = labels if isinstance(labels, list) and numbers.shape == (len(labels),) else []
            names = tuple(str(label) for label in fitting)
            found[path] = Value(numbers, names)
        else:
            found[path] = Value(NONE, why="it holds no numbers, or too many")
    if isinstance(frame, str) and frame:
        found = {name: replace(each, frame=each.frame or frame) for name, each in found.items()}
    return found


def as_numbers(value: Any) -> np.ndarray | None:
    """Return one number or a short list of them as an array; None for anything else."""
    if isinstance(value, bool | int | float | np.generic):
        return np.asarray(value, np.float64)
    if isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value) if len(value) <= LARGEST_ARRAY else None
        if array is not None and array.dtype.kind in "biuf" and array.ndim == 1 and array.size:
            return array.astype(np.float64)
    return None
