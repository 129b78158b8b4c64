"""Play episodes in OGBench's mazes.

`navigate`: go from a random cell to a random goal along OGBench's oracle sub-goals, then to the next goal.
`stitch`: go to one goal that is four cells away. `explore`: go in a random direction, which changes every ten steps.
The action of a point is the direction. A body with legs needs an expert that converts a direction to an action.
As in OGBench, no episode ends early, even if an ant falls on its back.
"""

from typing import Any

import numpy as np

from drol.tasks.ogbench.recipes import Recipe
from drol_reproduction.collecting.ogbench.trajectory import Trajectory, seed_everything
from drol_reproduction.experts.expert import Expert

STITCH_DISTANCE = 4  # cells
EXPLORE_STEPS = 10  # steps in one direction


def play_maze(
    environment: Any, seed: np.random.SeedSequence, recipe: Recipe, expert: Expert | None = None
) -> dict[str, np.ndarray]:
    """Play one episode and return its trajectory, which depends only on the seed, not on earlier episodes."""
    generator = seed_everything(seed)
    maze = environment.unwrapped
    cells = free_cells(maze.maze_map)
    start = cells[generator.integers(len(cells))]
    if recipe.kind == "stitch":
        goals = cells_at_distance(maze.maze_map, start, STITCH_DISTANCE) or [start]
    else:
        goals = [cell for cell in cells if not is_hallway(maze.maze_map, *cell)]

    def next_goal() -> tuple[int, int]:
        return goals[generator.integers(len(goals))]

    task = {"init_ij": start, "goal_ij": next_goal()}
    observation, _ = environment.reset(seed=int(generator.integers(2**31)), options={"task_info": task})
    trajectory = Trajectory()
    direction = np.zeros(2)
    for step in range(recipe.rows):
        position = maze.get_xy()
        if recipe.kind != "explore":
            direction = direction_to(position, maze.get_oracle_subgoal(position, maze.cur_goal_xy)[0])
        elif step % EXPLORE_STEPS == 0:
            direction = direction_to(np.zeros(2), generator.normal(size=2))
        action = direction if expert is None else expert.walking_action(maze.get_ob(ob_type="states"), direction)
        action = np.clip(action + generator.normal(0, recipe.noise, len(action)), -1, 1)
        # The inner environment is stepped, since the time limit of the wrapper does not apply to trajectories.
        next_observation, _, _, _, info = maze.step(action)
        trajectory.add(observation, action, step == recipe.rows - 1, info)
        if info["success"] and recipe.kind == "navigate":
            maze.set_goal(goal_xy=maze.add_noise(maze.ij_to_xy(next_goal())))
        observation = next_observation
    return trajectory.arrays()


def direction_to(position: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the unit vector from a position to a target."""
    difference = np.asarray(target) - position
    return difference / (np.linalg.norm(difference) + 1e-6)


def free_cells(maze_map: np.ndarray) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(maze_map == 0)]


def is_hallway(maze_map: np.ndarray, row: int, column: int) -> bool:
    """Return whether a cell only connects two opposite neighbours."""
    above, below = maze_map[row - 1, column], maze_map[row + 1, column]
    left, right = maze_map[row, column - 1], maze_map[row, column + 1]
    return (above == below == 0 and left == right == 1) or (left == right == 0 and above == below == 1)


def cells_at_distance(maze_map: np.ndarray, start: tuple[int, int], distance: int) -> list[tuple[int, int]]:
    """Return the free cells that are exactly `distance` steps away, in the order of the map."""
    free = set(free_cells(maze_map))
    seen = frontier = {start}
    for _ in range(distance):
        neighbours = {(row + down, column + right) for row, column in frontier for down, right in STEPS}
        frontier = (neighbours & free) - seen
        seen = seen | frontier
    return sorted(frontier)


STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
