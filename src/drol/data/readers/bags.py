"""Read steps from ROS 2 bags and MCAP files.

Alignment: there is one step for each message of the action's topic, at the time when it was received. Every other
value is from the newest message of its topic at that time. No later message is used, and nothing is interpolated.
Steps before the first message of any used topic are dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from drol.data.readers.bag_messages import Bag, Value
from drol.data.readers.columns import OTHER, Column, describe_shape
from drol.data.readers.fields import StepFile, choose_fields, expand, find_usual, join_fields, steps_in_block
from drol.data.trajectory_rows import Arrays
from drol.errors import InputError

TIME = "receive time"
RULE = (
    "a step for each message of {clock}, at the time when it was received; every other value is the newest one of its "
    "topic at that time, and steps before all topics have spoken are left out"
)


class BagFile(StepFile):
    """The topics of a recording; a column is a field of a topic's messages, such as joint_states/position."""

    is_episode = True

    def __init__(self, path: Path, mapping: Mapping[str, Sequence[str]], everything: bool = False):
        self.path = path
        with Bag(path) as bag:
            first = bag.first_messages()
            self.topic_of: dict[str, str] = {}
            self.columns = []
            for topic, message in first.items():
                for field, value in message.items():
                    name = column_name(topic, field)
                    other = self.topic_of.setdefault(name, topic)
                    if other != topic:
                        raise InputError(
                            f"{path}: the topics {other} and {topic} both have a column {name!r}; record one of them "
                            "under another name"
                        )
                    self.columns.append(self.describe(name, value))
                if not message:
                    self.columns.append(Column(topic, OTHER, words="messages", why="its messages hold no numbers"))
            self.columns += [Column(topic, OTHER, words="messages", why=why) for topic, why in bag.unread.items()]
            if everything:
                self.chosen = choose_fields(self.columns, None, path)
                self.clock = self.topic_of[self.find_clock(mapping)]
            else:
                self.chosen = choose_fields(self.columns, mapping, path)
                if self.chosen.get("time") is not None and "time" not in mapping:
                    del self.chosen["time"]  # steps are aligned by the time of receipt
                self.clock = self.topic_of[self.chosen["action"][0]]
            self.used = sorted({name for names in self.chosen.values() for name in names})
            self.topics = sorted({self.topic_of[name] for name in self.used})
            count = max(1, bag.topics[self.clock])
        sizes = {column.name: column.size for column in self.columns}
        self.nbytes = 8 * count * sum(sizes[name] for name in self.used)
        self.count = count
        self.notes = (RULE.format(clock=self.clock),)

    def find_clock(self, mapping: Mapping[str, Sequence[str]]) -> str:
        """Return the column of the action; each message of its topic is a step."""
        given = mapping.get("action")
        names = expand(given[0], self.columns, self.path) if given else find_usual("action", self.columns, self.path)
        if not names:
            raise InputError(f"{self.path}: which topic gives the steps? Name one of its columns with --action")
        return names[0]

    @staticmethod
    def describe(name: str, value: Value) -> Column:
        if value.why:
            return Column(name, value.kind, words="a field", why=value.why)
        shape, names = value.numbers.shape, label(name, value.names)
        return Column(name, shape=shape, words=describe_shape("float64", shape), names=names, frame=value.frame)

    @property
    def names(self) -> dict[str, str]:
        return super().names | ({"time": TIME} if "time" not in self.chosen else {})

    def blocks(self) -> Iterator[tuple[Arrays, float]]:
        columns = {column.name: column for column in self.columns}
        newest: dict[str, tuple[int, dict[str, np.ndarray]]] = {}
        rows: list[tuple[int, dict[str, np.ndarray]]] = []
        limit, done, early, oldest = steps_in_block(self.nbytes // self.count), 0, 0, (0, "")
        with Bag(self.path) as bag:
            for topic, time, message in bag.messages(self.topics):
                newest[topic] = time, self.values(topic, message, columns)
                if topic != self.clock:
                    continue
                done += 1
                if len(newest) < len(self.topics):
                    early += 1
                    continue
                oldest = max(oldest, *((time - seen, name) for name, (seen, _) in newest.items()))
                rows.append((time, {name: each for _, values in newest.values() for name, each in values.items()}))
                if len(rows) >= limit:
                    yield self.block(rows), min(1.0, done / self.count)
                    rows = []
        if rows:
            yield self.block(rows), 1.0
        notes = [RULE.format(clock=self.clock)]
        if early:
            notes.append(f"{early:,} messages of {self.clock} came before all topics had spoken, and were left out")
        if oldest[0]:
            notes.append(f"the oldest value that a step uses is {oldest[0] * 1e-9:.3g} s old ({oldest[1]})")
        self.notes = tuple(notes)

    def values(self, topic: str, message: Mapping[str, Value], columns: Mapping[str, Column]) -> dict[str, np.ndarray]:
        """Return the used columns of a message; raise `InputError` if they do not match the first message."""
        found = {}
        for name in self.used:
            if self.topic_of[name] != topic:
                continue
            value = {column_name(topic, field): each for field, each in message.items()}.get(name)
            first, where = columns[name], f"{self.path}: a message of {topic}"
            if value is None or value.why:
                why = "is not in it" if value is None else f"cannot be used: {value.why}"
                raise InputError(f"{where} has no numbers in {name}, which {why}; record it in every message")
            if value.numbers.shape != first.shape:
                raise InputError(
                    f"{where} has {value.numbers.size} numbers in {name}, the first message {first.size}; all messages "
                    "must have equally many"
                )
            if label(name, value.names) != first.names:
                now, before = (", ".join(names) or "no names" for names in (label(name, value.names), first.names))
                raise InputError(
                    f"{where} has {now} in {name}, the first message {before}; all messages must have the same names "
                    "in the same order (record each publisher under its own topic)"
                )
            found[name] = value.numbers
        return found

    def block(self, rows: Sequence[tuple[int, Mapping[str, np.ndarray]]]) -> Arrays:
        """Return the fields of some steps."""
        parts = {name: np.stack([values[name] for _, values in rows]) for name in self.used}
        block = join_fields(parts, self.chosen)
        times = np.asarray([time for time, _ in rows], np.int64)
        return block if "time" in self.chosen else block | {"time": times.astype(np.float64) * 1e-9}


def column_name(topic: str, field: str) -> str:
    """Return the name of a column: the topic without its first slash, and the field."""
    return "/".join(part for part in (topic.strip("/"), field) if part)


def label(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a column's numbers, such as position[left]."""
    return tuple(f"{name}[{each}]" for each in names)
