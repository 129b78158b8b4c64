"""Play episodes of an arm at OGBench's tables, with the oracles of its package.

`play`: the oracle follows a plan to each target, with smooth noise. `noisy`: the oracle is closed-loop, the noise level
is sampled for each trajectory, and a fraction of the actions is random. When a target is reached, the environment
samples the next one.
"""

from typing import Any

import numpy as np

from drol.tasks.ogbench.recipes import Recipe
from drol_reproduction.collecting.ogbench.trajectory import Trajectory, seed_everything

NOISE_SMOOTHING = 0.5  # smoothing of the noise of a plan, in steps
SMALLEST_MOVE = 0.4  # smallest norm of a move of the closed-loop oracle
NOISE_OF_ACTION = np.array([1.0, 1.0, 1.0, 3.0, 10.0])  # x, y, z, yaw, gripper; multiplied by the noise level
STACKING = {  # the range from which each trajectory samples its probability to stack a cube on another
    "single": (0.0, 0.0),
    "double": (0.0, 0.25),
    "triple": (0.05, 0.35),
    "quadruple": (0.1, 0.5),
}
ATTEMPTS = 100  # maximum number of attempts to play a valid trajectory


def make_table(recipe: Recipe) -> Any:
    """Make an environment that samples scenes and targets, and does not end when a target is reached."""
    import gymnasium
    import ogbench  # noqa: F401 (registers the environments)

    return gymnasium.make(
        recipe.environment, disable_env_checker=True, mode="data_collection", terminate_at_goal=False
    ).unwrapped


def make_oracles(environment: Any, recipe: Recipe) -> dict[str, Any]:
    """Make an oracle for each type of target."""
    from ogbench.manipspace.oracles.markov.button_markov import ButtonMarkovOracle
    from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle
    from ogbench.manipspace.oracles.markov.drawer_markov import DrawerMarkovOracle
    from ogbench.manipspace.oracles.markov.window_markov import WindowMarkovOracle
    from ogbench.manipspace.oracles.plan.button_plan import ButtonPlanOracle
    from ogbench.manipspace.oracles.plan.cube_plan import CubePlanOracle
    from ogbench.manipspace.oracles.plan.drawer_plan import DrawerPlanOracle
    from ogbench.manipspace.oracles.plan.window_plan import WindowPlanOracle

    if recipe.kind == "play":
        oracles = {
            "cube": CubePlanOracle,
            "button": ButtonPlanOracle,
            "drawer": DrawerPlanOracle,
            "window": WindowPlanOracle,
        }
        settings: dict[str, Any] = {"noise": recipe.noise, "noise_smoothing": NOISE_SMOOTHING}
    else:
        oracles = {
            "cube": CubeMarkovOracle,
            "button": ButtonMarkovOracle,
            "drawer": DrawerMarkovOracle,
            "window": WindowMarkovOracle,
        }
        settings = {"min_norm": SMALLEST_MOVE}
    extra = {"button": {"gripper_always_closed": True}} if "puzzle" in recipe.environment else {}
    return {target: oracle(env=environment, **settings, **extra.get(target, {})) for target, oracle in oracles.items()}


def play_table(environment: Any, seed: np.random.SeedSequence, recipe: Recipe) -> dict[str, np.ndarray]:
    """Play episodes until one is valid and return its trajectory, which depends only on the seed."""
    generator = seed_everything(seed)
    for _ in range(ATTEMPTS):
        arrays = attempt(environment, generator, recipe)
        if "scene" not in recipe.environment or is_healthy(arrays["qpos"]):
            return arrays
    raise RuntimeError(f"the cube left the table in {ATTEMPTS} of {ATTEMPTS} attempts")


def attempt(environment: Any, generator: np.random.Generator, recipe: Recipe) -> dict[str, np.ndarray]:
    """Play one episode and return its trajectory."""
    oracles = make_oracles(environment, recipe)
    stacking = generator.uniform(*STACKING.get(environment._env_type, (0.5, 0.5)))
    noise = generator.uniform(0, recipe.noise) * NOISE_OF_ACTION if recipe.kind == "noisy" else None
    observation, info = environment.reset(seed=int(generator.integers(2**31)))
    oracle = oracles[info["privileged/target_task"]]
    oracle.reset(observation, info)
    trajectory = Trajectory()
    for step in range(recipe.rows):
        if generator.random() < recipe.random_actions:
            action = generator.uniform(-1, 1, len(NOISE_OF_ACTION))
        else:
            action = np.asarray(oracle.select_action(observation, info))
            if noise is not None:
                action = action + generator.normal(0, noise)
        action = np.clip(action, -1, 1)
        next_observation, _, _, _, info = environment.step(action)
        trajectory.add(observation, action, step == recipe.rows - 1, info)
        if oracle.done:
            # As in OGBench, the next action still uses the observation of this step, which contains the old target.
            oracle_observation, oracle_info = environment.set_new_target(p_stack=stacking)
            oracle = oracles[oracle_info["privileged/target_task"]]
            oracle.reset(oracle_observation, oracle_info)
        observation = next_observation
    return trajectory.arrays()


def is_healthy(qpos: np.ndarray) -> bool:
    """Return whether the cube was always in view or in the drawer, so that goal images are unambiguous."""
    y, z = qpos[:, 15], qpos[:, 16]
    too_far_right = y >= 0.29
    left_of_the_table = (y <= -0.3) & ((z < 0.06) | (z > 0.08))  # between these heights the cube is in the drawer
    return not (too_far_right | left_of_the_table).any()
