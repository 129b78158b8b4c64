"""Rows of the mechanism that were made up, for tests of tables, verdicts and figures."""

import json

from drol_reproduction.mechanism import MechanismRow

CUBE = "cube-single-play-singletask-task2-v0"


def made_row(method="drol", seed=0, lag=1_000, changed=0.9, settings=None, **changes):
    """A row of a run with the paper's weight of cloning on cube-single."""
    weight = {"alpha": 300.0} if method == "fql" else {"bc_weight": 10.0}
    values = {
        "task": CUBE,
        "method": method,
        "settings": json.dumps(weight | (settings or {}), sort_keys=True),
        "seed": seed,
        "step": 40_000,
        "lag": lag,
        "changed": changed,
        "latent_distance": 0.6,
        "old_rank": 5.0,
        "movement": 1.1,
        "rose_changed": 0.62,
        "rose_kept": 0.51,
        "rose_other": 0.5,
        "nearest_before": 0.377,
        "nearest_after": 0.37,
        "nearest_if_kept": 0.41,
        "spread": 0.8,
        "collapsed": 0.1,
        "handed_over": 0.6,
        "stable": 0.3,
    }
    return MechanismRow(**(values | changes))


def made_rows():
    """Two seeds of DROL(16) and FQL and one of DROL without Q, at the lags that the verdicts take."""
    rows = []
    for lag, shares in ((100, (0.3, 0.23, 0.19)), (1_000, (0.9, 0.28, 0.2))):
        for seed in (0, 1):
            rows.append(made_row(seed=seed, lag=lag, changed=shares[0] + 0.02 * seed))
            rows.append(made_row("fql", seed=seed, lag=lag, changed=shares[2]))
        rows.append(made_row(lag=lag, changed=shares[1], settings={"q_weight": 0.0}))
    return rows
