"""Limits of resuming: missing checkpoints and lost rows."""

import itertools
from collections.abc import Iterable

from drol.checkpoints import saved_steps
from drol.errors import InputError
from drol.runs.config import RunConfig
from drol.runs.directory import EVALUATIONS, METRICS, RunDirectory


def refuse_without_checkpoint(directory: RunDirectory) -> None:
    """Raise `InputError` if a run without a checkpoint has rows or policies after step 0.

    Every run saves a checkpoint at its start, so the checkpoints of such a run were deleted.
    """
    newest = directory.newest_step()
    if newest > 0:
        raise InputError(
            f"the run in {directory.path} has rows or policies up to step {newest:,} and no checkpoint to go on from; "
            "all is kept as it is: to start anew choose another folder or move this folder away"
        )


def lost_rows(config: RunConfig, directory: RunDirectory, step: int) -> list[str]:
    """Return a warning for each file with missing rows up to `step` that a resumed run will not write again.

    An evaluation is repeated if its policy still exists.
    """
    if step == 0:
        return []
    policies = saved_steps(directory.policies)
    logged = {*range(config.log_interval, step + 1, config.log_interval), config.steps}
    evaluated = {*range(0, step + 1, config.evaluation_interval), config.steps} - {*policies}
    expected = {METRICS: (logged, directory.read_metrics()), EVALUATIONS: (evaluated, directory.read_evaluations())}
    lost = []
    for name, (steps, rows) in expected.items():
        due: Iterable = itertools.product((each for each in steps if each <= step), config.seeds)
        missing = sorted({*due} - {(row.step, row.seed) for row in rows})
        if missing:
            count = "1 row" if len(missing) == 1 else f"{len(missing):,} rows"
            first = f"the first is of step {missing[0][0]:,}, seed {missing[0][1]}"
            lost.append(f"{name} has lost {count} that going on does not make again; {first}")
    return lost
