"""Play episodes of an ant with a ball.

`navigate`: walk to the ball, dribble it to a random goal, then to the next goal. `stitch`: either only walk to a goal,
or start at the ball and only dribble. One expert walks (input ogbench-direction), another dribbles (ogbench-ball).
Without a dribbler, the walker pushes the ball from behind, which rarely moves it to the goal.
"""

from typing import Any

import numpy as np

from drol.tasks.experts import Expert
from drol.tasks.ogbench.collecting.mazes import direction_to, free_cells
from drol.tasks.ogbench.collecting.recipes import Recipe
from drol.tasks.ogbench.collecting.trajectory import Trajectory, seed_everything

DRIBBLE_DISTANCE = 2.0  # below this distance to the ball, the ant dribbles
FARTHEST_GOAL = 10.0  # largest distance from the ball to a goal in the dribbler's training
STUCK_STEPS, STUCK_RADIUS = 150, 2.0
ARRIVED = 0.5
BEHIND = 1.0  # distance behind the ball, as seen from the goal, from which a walker pushes it


def play_soccer(
    environment: Any, seed: np.random.SeedSequence, recipe: Recipe, walker: Expert, dribbler: Expert | None
) -> dict[str, np.ndarray]:
    """Play one episode and return its trajectory, which depends only on the seed."""
    generator = seed_everything(seed)
    maze = environment.unwrapped
    cells = free_cells(maze.maze_map)
    ant_cell, ball_cell, goal_cell = (cells[number] for number in generator.choice(len(cells), 3, replace=False))
    only = generator.choice(["walk", "dribble"]) if recipe.kind == "stitch" else None
    if only == "dribble":
        ball_cell = ant_cell
    task = {"agent_init_ij": ant_cell, "ball_init_ij": ball_cell, "goal_ij": goal_cell}
    observation, _ = environment.reset(seed=int(generator.integers(2**31)), options={"task_info": task})
    trajectory = Trajectory()
    positions: list[np.ndarray] = []
    detour = None  # a point that a stuck ant walks to first
    for step in range(recipe.rows):
        ant, ball = maze.get_agent_ball_xy()
        goal = np.asarray(maze.cur_goal_xy)
        positions.append(ant)
        if detour is not None and np.linalg.norm(detour - ant) <= ARRIVED:
            detour = None
        if detour is None and recipe.kind == "navigate" and is_stuck(positions):
            detour = np.asarray(maze.ij_to_xy(cells[generator.integers(len(cells))]))
        if detour is not None:
            action = walk_towards(maze, walker, observation, detour)
        elif only == "walk":
            action = walk_towards(maze, walker, observation, goal)
        elif only is None and np.linalg.norm(ant - ball) > DRIBBLE_DISTANCE:
            action = walk_towards(maze, walker, observation, ball)
        elif dribbler is None:
            action = walk_towards(maze, walker, observation, place_to_run_to(ant, ball, next_place(maze, ball, goal)))
        else:
            action = dribbler.dribbling_action(observation, ball - ant, next_place(maze, ball, goal) - ball)
        action = np.clip(action + generator.normal(0, recipe.noise, len(action)), -1, 1)
        next_observation, _, _, _, info = maze.step(action)
        trajectory.add(observation, action, step == recipe.rows - 1, info)
        if info["success"] and recipe.kind == "navigate":
            maze.set_goal(goal_xy=maze.add_noise(maze.ij_to_xy(cells[generator.integers(len(cells))])))
        observation = next_observation
    return trajectory.arrays()


def is_stuck(positions: list[np.ndarray]) -> bool:
    """Return whether the ant stayed within `STUCK_RADIUS` for the last `STUCK_STEPS` steps."""
    if len(positions) <= STUCK_STEPS + 1:
        return False
    recent = np.asarray(positions[-STUCK_STEPS - 1 : -1])
    return bool(np.linalg.norm(recent - positions[-1], axis=1).max() <= STUCK_RADIUS)


def walk_towards(maze: Any, walker: Expert, observation: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the action of an ant that should walk to a target, around walls."""
    ant = observation[:2]
    if maze._maze_type != "arena":  # there are walls
        target, _ = maze.get_oracle_subgoal(ant, target)
    if walker.input == "observation":
        return walker(observation)
    own = np.concatenate([observation[:15], observation[22:36]])  # positions and velocities of the ant alone
    return walker.walking_action(own, direction_to(ant, target))


def next_place(maze: Any, ball: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the next target of the ball."""
    if maze._maze_type != "arena":
        return maze.get_oracle_subgoal(ball, goal)[0]
    distance = np.linalg.norm(goal - ball)
    return goal if distance <= FARTHEST_GOAL else ball + FARTHEST_GOAL * (goal - ball) / distance


def place_to_run_to(ant: np.ndarray, ball: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return a point beyond the ball if the ant is behind it, else a point behind the ball."""
    forward = direction_to(ball, goal)
    is_behind = float(np.dot(direction_to(ant, ball), forward)) > 0.8
    return ball + forward if is_behind else ball - BEHIND * forward
