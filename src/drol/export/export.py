"""Export a policy of a run; the written files are tested on real observations before the folder gets its name."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drol_runtime
import jax
import jax.numpy as jnp
import numpy as np
from drol_runtime.bundle import DESCRIPTION, LARGEST_BEST_OF

from drol.data.trajectories import spread
from drol.errors import InputError
from drol.evaluation.support import hold_out, offline_scores, support_warning
from drol.export import onnx_file, stablehlo
from drol.export.bundle import Example, write_bundle
from drol.policy import Policy
from drol.runs.run import Run, open_run
from drol.storage import replace_folder

TEST_ROWS = 64  # observations of the data on which every output is compared with the trained policy
LARGEST_DIFFERENCE = 1e-5  # in units of half the width of the action bounds


@dataclass(frozen=True)
class Exported:
    """The result of `export_policy`.

    Attributes:
        path: The folder, as an absolute path.
        differences: For each output, the largest difference of its actions to those of the trained policy, in units
            of half the width of the action bounds.
        outside_support: The share of the policy's actions outside the support of the data; None for a task with a
            simulator, whose scores are more informative, or with too little data.
    """

    path: Path
    differences: dict[str, float]
    outside_support: float | None = None

    @property
    def warning(self) -> str | None:
        """A warning with advice if the policy leaves the support of the data; None otherwise."""
        return support_warning(self.outside_support)


def export_policy(
    run: Run | Path | str,
    out: Path | str,
    step: int | None = None,
    seed: int | None = None,
    best_of: int | None = None,
    onnx: bool = False,
    stablehlo_file: bool = False,
    replace: bool = False,
) -> Exported:
    """Write a policy as a bundle that a robot runs with NumPy only.

    docs/deploy.md explains how to run the bundle.

    Args:
        run: A run, or its folder.
        out: The folder to write.
        step: The step at which the policy was saved; the newest if None.
        seed: Its seed; the first of the run if None.
        best_of: The number of actions to draw, from which the critic chooses the best; the method's default if None.
        onnx: Whether to also write policy.onnx; needs the extra `onnx`.
        stablehlo_file: Whether to also write policy.stablehlo.
        replace: Whether an existing bundle may be replaced.

    Returns:
        The folder, and the difference of each output to the trained policy on observations of the data. If a
        difference is too large, `InputError` is raised and nothing is written.

    Example:
        >>> import drol
        >>> drol.export_policy("runs/demo", "bundle").differences  # doctest: +SKIP
        {'bundle': 9.5e-07}
    """
    run = run if isinstance(run, Run) else open_run(run)
    out = check_destination(Path(out), replace)
    policy = run.policy(step, seed)
    count = policy.algorithm.check_best_of(best_of)
    if count > LARGEST_BEST_OF:
        raise InputError(f"best_of is {count:,}; a bundle draws at most {LARGEST_BEST_OF:,} actions")
    example = make_example(run, policy, count)
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        writers: dict[str, Any] = {"onnx": onnx_file} if onnx else {}
        writers |= {"stablehlo": stablehlo} if stablehlo_file else {}
        for writer in writers.values():
            writer.write(partial, policy, example)
        write_bundle(partial, run, policy, example, run.saved_step(step), seed)
        differences = {"bundle": difference(policy, example, drol_runtime.load(partial).act)}
        differences |= {name: difference(policy, example, writer.load(partial)) for name, writer in writers.items()}
        for name, found in differences.items():
            if not found <= LARGEST_DIFFERENCE:
                raise InputError(f"the {name} differs from the trained policy by {found:.1e}; nothing was written")
        replace_folder(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Exported(out, differences, share_outside(run, policy, best_of))


def share_outside(run: Run, policy: Policy, best_of: int | None) -> float | None:
    """Return the share of a policy's actions outside the support; None with a simulator or too little data."""
    if run.task.make_environment is not None:
        return None
    with contextlib.suppress(InputError):  # data of a single trajectory
        return offline_scores(policy, hold_out(run.task), jax.random.key(0), best_of)["outside_support"]
    return None


def check_destination(out: Path, replace: bool) -> Path:
    """Return the folder to write as an absolute path; raise `InputError` if it has other content."""
    try:
        found = out.resolve()
    except RuntimeError as error:
        raise InputError(f"{out} is a link that leads to itself; name a new folder") from error
    if not found.name:
        raise InputError(f"{out} is the root of the file system; name a new folder")
    if out.exists() and not (out / DESCRIPTION).is_file() and (out.is_file() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not a bundle; name a new folder")
    if (out / DESCRIPTION).exists() and not replace:
        raise InputError(f"{out} holds a bundle; name another folder, or add --replace")
    return found


def make_example(run: Run, policy: Policy, best_of: int) -> Example:
    """Return actions of the trained policy on observations of the data, with the latents that it drew."""
    data = run.task.train
    sampler = policy.algorithm.sampler(policy.networks)
    observation = np.asarray(data.take(jnp.asarray(spread(data.size, TEST_ROWS))).observation, np.float32)
    keys = jax.random.split(jax.random.key(0), len(observation))
    latent = jax.vmap(lambda key: sampler.draw_latents(key, best_of))(keys)
    action = policy.in_units_of_the_data(policy.draw_each(observation, keys, best_of))
    return Example(observation, np.asarray(latent, np.float32), np.asarray(action, np.float32))


def difference(policy: Policy, example: Example, act: Any) -> float:
    """Return the largest difference to the trained policy, in units of half the width of the action bounds, if any."""
    found = np.asarray(act(example.observation, latent=example.latent), np.float64)
    unit = 1.0 if policy.action_box is None else policy.action_box.unit
    return float((np.abs(found - example.action) / unit).max())
