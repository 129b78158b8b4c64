"""Episodes for a page: paths through a maze after each evaluation, and recorded videos."""

import base64
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drol.data.trajectories import spread
from drol.errors import InputError
from drol.evaluation.videos import Recorder, import_pillow
from drol.reports.selected_runs import Found, Shown
from drol.runs.records import EvaluationRow
from drol.runs.run import Run
from drol.tasks.base import Maze

EVALUATIONS = 12  # most evaluations per run whose paths are on a page
PATHS, POINTS = 25, 48  # most paths of an evaluation, points of a path
UNITS = 100  # of the picture per cell of a maze
PICTURES, COLUMNS, WIDTH = 40, 8, 200  # of a video: frames, frames in a row of its image, pixels
FILM_BYTES = 1_200_000  # bytes of all videos of a page
LARGEST_VIDEO = 1 << 26  # most bytes of a video file
VIDEO = re.compile(r"0*([0-9]+)-seed([0-9]+)-episode([0-9]+)\.gif")


def maze_picture(maze: Maze) -> dict[str, Any]:
    """Return the maze as report.js draws it, in integers from its upper left corner."""
    rows, columns = maze.walls.shape
    goal = to_picture(maze, np.asarray([maze.goal]))[0]
    walls = [[int(column) * UNITS, int(rows - 1 - row) * UNITS] for row, column in np.argwhere(maze.walls)]
    size = {"width": columns * UNITS, "height": rows * UNITS, "unit": UNITS}
    return {**size, "walls": walls, "goal": [*goal.tolist(), round(maze.goal_radius / maze.unit * UNITS)]}


def to_picture(maze: Maze, positions: np.ndarray) -> np.ndarray:
    """Convert positions [N, 2] to integers in the picture of a maze; its second axis points down."""
    scale, rows = UNITS / maze.unit, maze.walls.shape[0]
    x = (positions[:, 0] + maze.offset[0] + maze.unit / 2) * scale
    y = rows * UNITS - (positions[:, 1] + maze.offset[1] + maze.unit / 2) * scale
    return np.nan_to_num(np.stack([x, y], -1)).clip(-(10**5), 10**5).round().astype(int)


def maze_players(shown: Sequence[Shown], labels: Sequence[str], found: Found) -> list[dict[str, Any]]:
    """Return a player for each task with a maze: the paths of the first seed of each run after each evaluation."""
    players: dict[str, dict[str, Any]] = {}
    for each in shown:
        run, task = each.run, found.task_of(each.run)
        if task is None or task.maze is None:
            continue
        frames = maze_frames(run, task.maze, found)
        if frames:
            player = {"kind": "maze", "task": run.config.task, "maze": maze_picture(task.maze), "runs": []}
            entry = {"label": each.label, "group": group_of(each, labels), "frames": frames}
            players.setdefault(run.config.task, player)["runs"].append(entry)
    return list(players.values())


def group_of(each: Shown, labels: Sequence[str]) -> int:
    """Return the number of a run's group in the legend; None for a single group, whose legend shows seeds."""
    return labels.index(each.label) if len(labels) > 1 else len(each.run.config.seeds) + 1


def maze_frames(run: Run, maze: Maze, found: Found) -> list[dict[str, Any]]:
    """Return the paths of the first seed after some evaluations; record missing or damaged ones in `found`."""
    scored = {row.step: row for row in run.evaluations if row.episodes and row.seed == run.config.seeds[0]}
    rows = sorted(scored.values(), key=lambda row: row.step)
    frames = []
    for row in (rows[index] for index in spread(len(rows), EVALUATIONS)):
        before = len(found.damage)
        paths = found.readable(lambda row=row: run.directory.read_trajectories(row.step, row.seed))
        if paths and len(paths) == len(row.episodes):
            chosen = spread(len(paths), PATHS)
            lines = [to_picture(maze, path[spread(len(path), POINTS)]).ravel().tolist() for path in paths]
            arrived = "".join("1" if row.episodes[index].success else "0" for index in chosen)
            counts = {"step": row.step, "successes": row.successes, "episodes": len(row.episodes)}
            frames.append({**counts, "arrived": arrived, "paths": [lines[index] for index in chosen]})
        elif len(found.damage) == before and not row.failures:
            found.missing.append(
                f"the paths of the evaluation after {row.step:,} updates are missing ({run.path.name})"
            )
    return frames


def record_videos(shown: Sequence[Shown], count: int, found: Found) -> None:
    """Play the first episodes of each run's last evaluation again and record them in its folder."""
    for each in shown:
        run, task = each.run, found.task_of(each.run)
        row = newest_evaluation(run)
        if task is None or task.make_environment is None or row is None:
            raise InputError(f"{run.path}: the run has no evaluation to record; remove --video")
        policy, best_of = run.policy(row.step, row.seed), run.config.algorithm.check_best_of(row.best_of)
        with Recorder(task) as recorder:
            for episode in row.episodes[:count]:
                recorder.record(policy, episode, best_of, run.directory.video(row.step, row.seed, episode.seed))


def newest_evaluation(run: Run) -> EvaluationRow | None:
    """Return the last evaluation of the first seed that has both episodes and a saved policy."""
    saved = set(run.steps)
    rows = [row for row in run.evaluations if row.episodes and row.seed == run.config.seeds[0] and row.step in saved]
    return max(rows, key=lambda row: row.step, default=None)


def film_player(shown: Sequence[Shown], labels: Sequence[str], found: Found) -> dict[str, Any] | None:
    """Return the recorded videos of the newest policies, as many as fit on a page."""
    films, left = [], FILM_BYTES
    for each in shown:
        for path, step, seed, episode in recorded(each.run):
            film = found.readable(lambda path=path: film_of(path))
            if film is not None and len(film["image"]) > left:
                found.missing.append(f"the video {path.name} is omitted: the page would be too large")
            elif film is not None:
                left -= len(film["image"])
                label = f"{each.label}, {step:,} updates, seed {seed}, episode {episode}"
                films.append({"label": label, "group": group_of(each, labels), **film})
    return {"kind": "film", "runs": films} if films else None


def recorded(run: Run) -> list[tuple[Path, int, int, int]]:
    """Return the videos of the newest recorded step of a run: file, step, seed, seed of the episode."""
    videos = []
    for path in sorted(run.directory.videos.glob("*.gif")):
        match = VIDEO.fullmatch(path.name)
        if match and path.is_file():
            videos.append((path, int(match[1]), int(match[2]), int(match[3])))
    newest = max((step for _, step, *_ in videos), default=0)
    return [each for each in videos if each[1] == newest]


def film_of(path: Path) -> dict[str, Any]:
    """Convert a recorded video to one small image with some of its frames side by side."""
    image_module = import_pillow()
    try:
        if path.stat().st_size > LARGEST_VIDEO:
            raise ValueError(f"it has more than {LARGEST_VIDEO:,} bytes")
        with image_module.open(path, formats=["GIF"]) as video:
            chosen = spread(getattr(video, "n_frames", 1), PICTURES)
            height = round(WIDTH * video.height / video.width)
            if not 0 < height <= 4 * WIDTH:
                raise ValueError(f"it is {video.width} x {video.height}")
            sheet = image_module.new("RGB", (WIDTH * COLUMNS, height * -(-len(chosen) // COLUMNS)))
            for place, index in enumerate(chosen):
                video.seek(int(index))
                picture = video.convert("RGB").resize((WIDTH, height))
                sheet.paste(picture, (WIDTH * (place % COLUMNS), height * (place // COLUMNS)))
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, image_module.DecompressionBombError) as error:
        raise InputError(f"the video {path} cannot be read ({error})") from error
    content = io.BytesIO()
    sheet.save(content, "WEBP", quality=55)
    image = f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode()}"
    return {"image": image, "width": WIDTH, "height": height, "columns": COLUMNS, "count": len(chosen)}
