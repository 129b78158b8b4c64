"""OGBench's settings to collect each dataset: environment, type of data, number of trajectories, noise."""

from dataclasses import dataclass

from drol.errors import unknown_name
from drol.tasks.source import wrap_names


@dataclass(frozen=True)
class Recipe:
    """The settings to collect one dataset."""

    environment: str  # the id of the environment
    kind: str  # navigate, stitch or explore in mazes, play or noisy on tables
    body: str  # point, ant or humanoid in mazes, arm on tables
    trajectories: int  # trajectories in OGBench's file
    rows: int  # rows of a trajectory: its transitions and the final observation
    noise: float  # standard deviation of the noise on actions; for an arm, see manipulation.py
    random_actions: float = 0.0  # fraction of random actions

    @property
    def visual(self) -> bool:
        return self.environment.startswith("visual-")

    @property
    def needs_expert(self) -> bool:
        return self.body in ("ant", "humanoid")


BODY_NOISE = {"point": 0.5, "ant": 0.2, "humanoid": 0.2}
EXPLORE_NOISE = 1.0
ARM_NOISE = 0.1
MAZES = [  # body, environments, mazes, kind, trajectories, rows
    ("point", ("pointmaze",), ("medium", "large", "teleport"), "navigate", 1000, 1001),
    ("point", ("pointmaze",), ("giant",), "navigate", 500, 2001),
    ("point", ("pointmaze",), ("medium", "large", "giant", "teleport"), "stitch", 5000, 201),
    ("ant", ("antmaze", "visual-antmaze"), ("medium", "large", "teleport"), "navigate", 1000, 1001),
    ("ant", ("antmaze", "visual-antmaze"), ("giant",), "navigate", 500, 2001),
    ("ant", ("antmaze", "visual-antmaze"), ("medium", "large", "giant", "teleport"), "stitch", 5000, 201),
    ("ant", ("antmaze", "visual-antmaze"), ("medium", "large", "teleport"), "explore", 10_000, 501),
    ("humanoid", ("humanoidmaze", "visual-humanoidmaze"), ("medium", "large"), "navigate", 1000, 2001),
    ("humanoid", ("humanoidmaze", "visual-humanoidmaze"), ("giant",), "navigate", 1000, 4001),
    ("humanoid", ("humanoidmaze", "visual-humanoidmaze"), ("medium", "large"), "stitch", 5000, 401),
    ("humanoid", ("humanoidmaze", "visual-humanoidmaze"), ("giant",), "stitch", 10_000, 401),
]
TABLES = {  # environment: trajectories, fraction of random actions in noisy data
    "cube-single": (1000, 0.1),
    "cube-double": (1000, 0.1),
    "cube-triple": (3000, 0.1),
    "cube-quadruple": (5000, 0.1),
    "scene": (1000, 0.1),
    "puzzle-3x3": (1000, 0.2),
    "puzzle-4x4": (1000, 0.2),
    "puzzle-4x5": (3000, 0.2),
    "puzzle-4x6": (5000, 0.2),
}


def make_recipes() -> dict[str, Recipe]:
    """Return the recipe of every dataset, by its name."""
    recipes = {}
    for body, environments, mazes, kind, trajectories, rows in MAZES:
        noise = EXPLORE_NOISE if kind == "explore" else BODY_NOISE[body]
        for environment in environments:
            for maze in mazes:
                recipe = Recipe(f"{environment}-{maze}-v0", kind, body, trajectories, rows, noise)
                recipes[f"{environment}-{maze}-{kind}-v0"] = recipe
    for table, (trajectories, random_actions) in TABLES.items():
        for environment in (table, f"visual-{table}"):
            for kind in ("play", "noisy"):
                share = random_actions if kind == "noisy" else 0.0
                recipe = Recipe(f"{environment}-v0", kind, "arm", trajectories, 1001, ARM_NOISE, share)
                recipes[f"{environment}-{kind}-v0"] = recipe
    return recipes


RECIPES = make_recipes()
# CPU time of one step, including the policy, on one core, measured on runs of 300 steps up to complete datasets
# (2026-11-18). The first matching prefix applies. Larger cubes and puzzles were not measured; they use the nearest
# measured time.
STEP_MILLISECONDS = {
    "pointmaze": 0.14,
    "antmaze-giant": 1.14,
    "antmaze": 0.9,
    "cube-double": 3.2,
    "cube": 4.4,
    "scene": 3.7,
    "puzzle-3x3": 3.9,
    "puzzle": 4.6,
}


def estimate_seconds(dataset_name: str) -> float | None:
    """Estimate the time to collect a complete dataset on one core; None if the family was not measured."""
    recipe = RECIPES[dataset_name]
    trajectories = recipe.trajectories + max(1, recipe.trajectories // 10)
    for prefix, milliseconds in STEP_MILLISECONDS.items():
        if dataset_name.startswith(prefix):
            return trajectories * recipe.rows * milliseconds / 1000
    return None


COLLECTABLE = tuple(RECIPES)


def find_recipe(dataset_name: str) -> Recipe:
    """Return the recipe of a dataset."""
    if dataset_name not in RECIPES:
        advice = "`drol data collect --help` names all that can be collected"
        raise unknown_name("dataset of OGBench", dataset_name, RECIPES, advice)
    return RECIPES[dataset_name]


FAMILIES = ("pointmaze", "cube", "scene", "puzzle", "antmaze", "humanoidmaze", "visual")
HELP = f"""OGBench (.npz):
{chr(10).join(wrap_names(name for name in RECIPES if name.startswith(family)) for family in FAMILIES)}
Mazes of points and all tables are collected by the oracles of the ogbench package. Bodies with legs need --expert, a
policy folder: `drol data train-expert` trains one, `drol data expert` makes one from a file of weights.
The default name of the file has the name of the expert's folder. NAME.json records the recipe, the experts and the
hashes of the arrays.
A tenth as many trajectories more are collected for validation. Finished ones are kept in NAME.parts; after an
interruption the same command resumes."""
