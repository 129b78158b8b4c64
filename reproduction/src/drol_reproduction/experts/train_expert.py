"""Train an ant that walks in a given direction, as OGBench trains the expert of its antmaze datasets.

`online-ant-xy-v0` is OGBench's online ant with a random direction, drawn again every 100 steps, at the end of its
observation. The reward is the distance that the ant moves in that direction. The first actions are uniform; then each
step is followed by one update of SAC.

Every random number depends on the seed and the number of the step or episode, so a checkpoint has no generators. A
resumed training replays the recorded actions of the unfinished episode, which leads to the same state.
"""

import dataclasses
import importlib.metadata
import json
import logging
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from drol.checkpoints import newest_valid, read_metadata, save_tree, saved_steps, step_name
from drol.errors import InputError
from drol.progress import Report
from drol.stop_signals import StopRequest, stop_requests
from drol.storage import exclusive
from drol.tasks.packages import missing_package
from drol_reproduction.collecting.ogbench.trajectory import seed_everything
from drol_reproduction.experts.expert import Expert, make_expert, save_expert
from drol_reproduction.experts.sac import SAC, Batch, State, explore, update

logger = logging.getLogger(__name__)

EXPERTS = ("ant",)
ENVIRONMENT = "online-ant-xy-v0"  # the name in OGBench's training script
STEPS, RANDOM_STEPS, DIRECTION_STEPS = 400_000, 10_000, 100
CHECKPOINT_INTERVAL, KEPT_CHECKPOINTS = 20_000, 2
MEASURED_EPISODES = 10
PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy", "jax")  # packages whose versions may change the weights


@dataclass(frozen=True)
class ExpertTraining:
    """The outcome of a training.

    Attributes:
        folder: The folder of the expert.
        step: The number of steps taken.
        steps: The number of steps of the complete training.
        stopped_by: The signal that stopped it before its end.
        mean_distance: The mean distance in metres that the expert moves in the right direction in one episode.
        fallen: The share of measured episodes in which the expert fell.
    """

    folder: Path
    step: int
    steps: int
    stopped_by: int | None = None
    mean_distance: float = np.nan
    fallen: float = np.nan


def train_expert(
    folder: Path,
    expert: str = "ant",
    *,
    steps: int = STEPS,
    seed: int = 0,
    sac: SAC | None = None,
    random_steps: int = RANDOM_STEPS,
    checkpoint_interval: int = CHECKPOINT_INTERVAL,
    report: Report | None = None,
) -> ExpertTraining:
    """Train an expert and write its policy folder.

    Checkpoints are in `<folder>.training` until the expert is written. The same call after a signal or a kill resumes
    there, and the weights equal the weights of an uninterrupted training.

    Args:
        folder: The policy folder to write.
        expert: One of `EXPERTS`.
        steps: The steps to take in the environment.
        seed: The same seed gives the same weights.
        sac: The settings of SAC.
        random_steps: The steps with uniform actions, before the first update.
        checkpoint_interval: The steps between two checkpoints.
        report: Called as `report(step, steps, what)` after the random steps.
    """
    if expert not in EXPERTS:
        raise InputError(f"unknown expert {expert!r}; experts that can be trained: {', '.join(EXPERTS)}")
    limits = (("steps", steps), ("random_steps", random_steps), ("checkpoint_interval", checkpoint_interval))
    for name, value in limits:
        if value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be at least 0")
    if folder.exists():
        raise InputError(f"{folder} exists already; choose another --out, nothing was written")
    training_folder = folder.with_name(f"{folder.name}.training")
    try:
        training_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {training_folder} ({error.strerror}); choose another --out") from error
    busy = f"another process is training into {training_folder}; wait or choose another --out"
    with exclusive(training_folder / ".lock", busy), stop_requests() as stop:
        training = Training(training_folder, steps, seed, sac or SAC(), random_steps)
        for line in training.resume():
            logger.info(line)
        training.run(stop, checkpoint_interval, report)
        if training.step < steps:
            return ExpertTraining(folder, training.step, steps, stop.signal)
        trained = training.expert()
        mean_distance, fallen = measure_expert(training.environment, trained)
        about = training.settings | {"steps": steps, "mean_distance": mean_distance, "fallen": fallen}
        save_expert(trained, folder, about | {"learning_curve": training.learning_curve(checkpoint_interval)})
        shutil.rmtree(training_folder)
    return ExpertTraining(folder, steps, steps, None, mean_distance, fallen)


class Training:
    """The environment, the networks and all transitions so far."""

    def __init__(self, folder: Path, steps: int, seed: int, sac: SAC, random_steps: int):
        self.folder, self.steps, self.seed, self.sac, self.random_steps = folder, steps, seed, sac, random_steps
        settings = {"environment": ENVIRONMENT, "seed": seed, "random_steps": random_steps}
        settings |= {"sac": dataclasses.asdict(sac), "versions": package_versions()}
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))  # tuples become lists, as in the file
        self.environment = make_environment()
        observation, action = (self.environment.observation_space.shape[0], self.environment.action_space.shape[0])
        self.key = jax.random.key(seed)
        self.state: State = sac.init(self.key, observation, action)
        self.step = 0
        self.rows = empty_rows(steps, observation, action)
        self.observation = self.begin_episode()

    @property
    def episode(self) -> int:
        """The number of the current episode."""
        return int(self.rows["last"][: self.step].sum())

    def begin_episode(self) -> np.ndarray:
        """Reset the environment to the start of the current episode."""
        generator = seed_everything(np.random.SeedSequence((self.seed, self.episode)))
        return self.environment.reset(seed=int(generator.integers(2**31)))[0].astype(np.float32)

    def run(self, stop: StopRequest, checkpoint_interval: int, report: Report | None) -> None:
        """Take steps and updates until the end or a signal; save checkpoints."""
        distance, saved_step = "", self.step
        if report and self.step >= self.random_steps:
            report(self.step, self.steps, distance)
        while self.step < self.steps and stop.signal is None:
            self.advance()
            if self.rows["last"][self.step - 1]:
                distance = f"{self.recent_distance():.1f} m per episode"
            # Random steps are quick: with them, the estimate of the time left would be too short.
            if report and self.step >= self.random_steps and (self.step % 100 == 0 or self.step == self.steps):
                report(self.step, self.steps, distance)
            if self.step % checkpoint_interval == 0:
                self.save()
                saved_step = self.step
        if saved_step < self.step:
            self.save()

    def advance(self) -> None:
        """Take one step in the environment, then do one update."""
        generator = np.random.default_rng((self.seed, self.step))
        if self.step + 1 < self.random_steps:
            action = generator.uniform(-1, 1, self.rows["action"].shape[1]).astype(np.float32)
        else:
            action = np.asarray(explore(self.state.networks.network.actor, self.observation, self.key, self.step))
        following, reward, terminated, truncated, _ = self.environment.step(action)
        following = following.astype(np.float32)
        row = (self.observation, action, reward, not terminated, following, terminated or truncated)
        for array, value in zip(self.rows.values(), row, strict=True):
            array[self.step] = value
        self.step += 1
        self.observation = self.begin_episode() if self.rows["last"][self.step - 1] else following
        if self.step >= self.random_steps:
            drawn = generator.integers(self.step, size=self.sac.batch_size)
            batch = Batch._make(self.rows[name][drawn] for name in Batch._fields)
            self.state, _ = update(self.sac, self.state, batch, self.key, self.step)

    def save(self) -> None:
        """Write a checkpoint and delete old ones."""
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.state)):
            raise InputError(f"the training diverged before step {self.step:,}; choose another --seed and --out")
        tree = {"state": self.state, "rows": {name: array[: self.step] for name, array in self.rows.items()}}
        save_tree(self.folder / step_name(self.step), tree, {"step": self.step, "settings": self.settings})
        for step in saved_steps(self.folder)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(self.folder / step_name(step))

    def resume(self) -> list[str]:
        """Load the newest valid checkpoint, if there is one; return notes for the user."""

        def tree_like(about: dict[str, Any]) -> dict[str, Any]:
            sizes = self.rows["observation"].shape[1], self.rows["action"].shape[1]
            return {"state": jax.eval_shape(lambda: self.state), "rows": empty_rows(about["step"], *sizes)}

        step, tree, notes = newest_valid(self.folder, tree_like)
        if tree is None and notes:
            raise InputError(f"no checkpoint in {self.folder} can be used ({notes[0]}); delete the folder to restart")
        if tree is None:
            return []
        found = read_metadata(self.folder / step_name(step))["settings"]
        for name, value in self.settings.items():
            if found.get(name) != value:
                raise InputError(
                    f"{self.folder} has a training with {name} {found.get(name)!r}, not {value!r}; "
                    "finish that training, delete the folder, or choose another --out"
                )
        if step > self.steps:
            raise InputError(f"{self.folder} has a training of {step:,} steps; give --steps {step} or more")
        self.step, self.state = step, tree["state"]
        for name, array in tree["rows"].items():
            self.rows[name][:step] = array
        self.observation = self.begin_episode()
        ends = np.flatnonzero(self.rows["last"][:step])
        for row in range(int(ends[-1]) + 1 if len(ends) else 0, step):
            self.observation = self.environment.step(self.rows["action"][row])[0].astype(np.float32)
            if not np.array_equal(self.observation, self.rows["next_observation"][row]):
                raise InputError(
                    f"{self.folder}: the simulator does not replay the recorded episode; "
                    "resume on the machine where the training began, or delete the folder"
                )
        return [*notes, f"resuming at step {step:,}"]

    def recent_distance(self) -> float:
        """Return the mean reward of the last ten episodes."""
        ends = np.flatnonzero(self.rows["last"][: self.step])[-11:]
        first = ends[0] + 1 if len(ends) == 11 else 0
        return float(self.rows["reward"][first : ends[-1] + 1].sum()) / min(len(ends), 10)

    def learning_curve(self, interval: int) -> list[list[float]]:
        """Return [step, mean distance in metres per 1,000 steps] for each interval."""
        curve = []
        for first in range(0, self.step, interval):
            reward = self.rows["reward"][first : min(first + interval, self.step)]
            curve.append([first + len(reward), round(1000 * float(reward.mean()), 2)])
        return curve

    def expert(self) -> Expert:
        """Return the policy that takes the mean action."""
        layers = self.state.networks.network.actor.layers
        arrays = {f"kernel_{number}": np.asarray(layer.kernel) for number, layer in enumerate(layers)}
        arrays |= {f"bias_{number}": np.asarray(layer.bias) for number, layer in enumerate(layers)}
        size = self.rows["action"].shape[1]
        for name in (f"kernel_{len(layers) - 1}", f"bias_{len(layers) - 1}"):
            arrays[name] = arrays[name][..., :size]  # the rest is log sigma
        return make_expert(
            arrays, activation="gelu", output="tanh", input="ogbench-direction", direction_scale=1.0, where="the actor"
        )


def empty_rows(steps: int, observation: int, action: int) -> dict[str, np.ndarray]:
    """Return empty arrays for the transitions of a training; `last` marks the last transition of each episode."""
    return {
        "observation": np.zeros((steps, observation), np.float32),
        "action": np.zeros((steps, action), np.float32),
        "reward": np.zeros(steps, np.float32),
        "not_terminal": np.zeros(steps, np.float32),
        "next_observation": np.zeros((steps, observation), np.float32),
        "last": np.zeros(steps, bool),
    }


def make_environment() -> Any:
    """Make OGBench's online ant with directions."""
    try:
        import gymnasium
        import ogbench.online_locomotion  # noqa: F401 (registers the environments)
        from ogbench.online_locomotion.wrappers import GymXYWrapper
    except ImportError as error:
        raise missing_package("OGBench", "ogbench", error) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        environment = gymnasium.make(ENVIRONMENT.replace("-xy", ""), disable_env_checker=True)
        return GymXYWrapper(environment, resample_interval=DIRECTION_STEPS)


def measure_expert(environment: Any, expert: Expert) -> tuple[float, float]:
    """Return the mean distance per episode and the share of episodes in which the expert fell."""
    distances, falls = [], []
    for number in range(MEASURED_EPISODES):
        generator = seed_everything(np.random.SeedSequence((number,)))
        observation, ended, distance = environment.reset(seed=int(generator.integers(2**31)))[0], False, 0.0
        terminated = False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(expert(observation))
            distance, ended = distance + float(reward), terminated or truncated
        distances.append(distance)
        falls.append(bool(terminated))
    return round(float(np.mean(distances)), 3), float(np.mean(falls))


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that may change the weights."""
    try:
        return {package: importlib.metadata.version(package) for package in PACKAGES}
    except importlib.metadata.PackageNotFoundError as error:
        raise missing_package("OGBench", "ogbench", error) from error
