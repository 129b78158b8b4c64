"""Small recordings as other tools write them: by the tool itself where it is light, else by its documented layout."""

import gc
import json
import warnings
from pathlib import Path

import gymnasium
import h5py
import numpy as np
import pyarrow
import pyarrow.parquet

LENGTHS = (5, 7, 6)


class Arm(gymnasium.Env):
    """Two joints that move as they are told, and a goal; it is over after some steps, or cut."""

    observation_space = gymnasium.spaces.Dict(
        {"q": gymnasium.spaces.Box(-9, 9, (2,), np.float32), "goal": gymnasium.spaces.Box(-9, 9, (1,), np.float32)}
    )
    action_space = gymnasium.spaces.Box(np.array([-2, -3], np.float32), np.array([0.5, 3], np.float32))

    def observe(self):
        return {"q": self.q.astype(np.float32), "goal": np.array([1], np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.q, self.steps, self.number = self.np_random.normal(size=2), 0, seed or 0
        return self.observe(), {"effort": 0.0}

    def step(self, action):
        self.q, self.steps = self.q + 0.1 * action, self.steps + 1
        over = self.steps == LENGTHS[self.number % len(LENGTHS)]
        ended = over and self.number % 2 == 0
        return self.observe(), float(self.steps), ended, over and not ended, {"effort": float(self.steps)}


def record_minari(folder: Path, kind: str, monkeypatch, episodes: int = 12) -> Path:
    """Record episodes with Minari; return the folder of the dataset."""
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collector = minari.DataCollector(Arm(), record_infos=True, data_format=kind)
        collector.action_space.seed(0)
        for number in range(episodes):
            collector.reset(seed=number)
            over = False
            while not over:
                *_, ended, cut, _ = collector.step(collector.action_space.sample())
                over = ended or cut
        collector.create_dataset(f"arm/{kind}-v0")
        collector.close()
        del collector
        gc.collect()  # Minari's temporary folder warns when it goes
    return folder / "arm" / f"{kind}-v0"


def episode_steps(length: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "observations": generator.normal(size=(length, 3)).astype(np.float32),
        "actions": generator.uniform(-0.9, 0.9, (length, 2)).astype(np.float32),
        "rewards": generator.normal(size=(length, 1)).astype(np.float32),
    }


def write_d3rlpy(path: Path) -> list[dict[str, np.ndarray]]:
    """The layout of `ReplayBuffer.dump` of d3rlpy 2: numbered arrays; return the episodes."""
    episodes = [episode_steps(length, seed) for seed, length in enumerate(LENGTHS)]
    with h5py.File(path, "w") as file:
        file["columns"] = ["observations", "actions", "rewards", "terminated"]
        file["num_episodes"] = len(episodes)
        for number, episode in enumerate(episodes):
            for name, array in episode.items():
                file[f"{name}_{number}"] = array
            file[f"terminated_{number}"] = number != 1
        file["version"] = "2.1"
    return episodes


def vectors(array: np.ndarray) -> pyarrow.Array:
    return pyarrow.array(array.tolist(), pyarrow.list_(pyarrow.float32(), array.shape[1]))


def write_lerobot(folder: Path, version: str, embedded_image: bool = False) -> None:
    """A dataset of LeRobot, v2.1 (a file for each episode) or v3.0 (one file), with a video beside it."""
    generator, state = np.random.default_rng(0), ["shoulder", "elbow"]
    features = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": state},
        "observation.environment_state": {"dtype": "float32", "shape": [1], "names": ["goal"]},
        "action": {"dtype": "float32", "shape": [2], "names": {"motors": state}},
        "observation.images.top": {"dtype": "image" if embedded_image else "video", "shape": [8, 8, 3]},
    }
    tables = []
    for episode, length in enumerate(LENGTHS):
        columns = {
            "observation.state": vectors(generator.normal(size=(length, 2))),
            "observation.environment_state": vectors(np.full((length, 1), float(episode))),
            "action": vectors(generator.uniform(-1, 1, (length, 2))),
            "timestamp": pyarrow.array(np.arange(length) / 30, pyarrow.float32()),
            "frame_index": np.arange(length),
            "episode_index": np.full(length, episode),
            "index": np.arange(length) + sum(LENGTHS[:episode]),
            "task_index": np.full(length, episode % 2),
        }
        if embedded_image:
            columns["observation.images.top"] = pyarrow.array([{"bytes": b"png", "path": "x.png"}] * length)
        tables.append(pyarrow.table(columns))
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    tasks = ["pick the cube", "place it"]
    if version == "v2.1":
        for number, table in enumerate(tables):
            pyarrow.parquet.write_table(table, folder / "data" / "chunk-000" / f"episode_{number:06d}.parquet")
        lines = [json.dumps({"task_index": number, "task": text}) for number, text in enumerate(tasks)]
        (folder / "meta" / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    else:
        pyarrow.parquet.write_table(pyarrow.concat_tables(tables), folder / "data" / "chunk-000" / "file-000.parquet")
        table = pyarrow.table({"task_index": [0, 1], "task": tasks})
        pyarrow.parquet.write_table(table, folder / "meta" / "tasks.parquet")
    info = {"codebase_version": version, "fps": 30, "features": features}
    (folder / "meta" / "info.json").write_text(json.dumps(info))


def write_bag(folder: Path, kind: str) -> None:
    """A bag of ROS 2: joint states at 100 Hz, commands at 50 Hz that begin later, and a topic of text."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    names = {
        "state": "sensor_msgs/msg/JointState", "header": "std_msgs/msg/Header", "time": "builtin_interfaces/msg/Time",
        "command": "std_msgs/msg/Float64MultiArray", "layout": "std_msgs/msg/MultiArrayLayout",
        "text": "std_msgs/msg/String",
    }  # fmt: skip
    types = {name: store.types[each] for name, each in names.items()}
    with Writer(folder, version=9, storage_plugin=StoragePlugin[kind]) as writer:
        topics = {"state": "/joint_states", "command": "/command", "text": "/note"}
        channels = {name: writer.add_connection(topic, names[name], typestore=store) for name, topic in topics.items()}

        def write(name, time, message):
            writer.write(channels[name], time, store.serialize_cdr(message, names[name]))

        write("command", 999_000_000, types["command"](types["layout"]([], 0), np.array([0.9])))  # before any state
        write("text", 999_500_000, types["text"]("hello"))
        for number in range(60):
            time = 1_000_000_000 + 10_000_000 * number
            header = types["header"](types["time"](time // 10**9, time % 10**9), "base")
            empty = np.zeros(0)
            write("state", time, types["state"](header, ["left", "right"], np.array([number, -1.0]), empty, empty))
            if number % 2:
                write("command", time + 4_000_000, types["command"](types["layout"]([], 0), np.array([number / 60])))


def write_json_mcap(path: Path) -> None:
    """An MCAP file with messages in JSON, as Foxglove writes them."""
    from mcap.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("pose", "jsonschema", b"{}")
        channels = {topic: writer.register_channel(topic, "json", schema) for topic in ("/pose", "/cmd")}
        for number in range(20):
            for topic, content in (("/pose", {"position": {"x": number, "y": 2.0}}), ("/cmd", {"v": number / 20})):
                time, data = 10**9 + number * 10**8, json.dumps(content).encode()
                writer.add_message(channels[topic], log_time=time, data=data, publish_time=time)
        writer.finish()
