import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drol.algorithms.beyond.driftql import DriftQL

RELEASED = json.loads((Path(__file__).parent / "fixtures" / "driftql.json").read_text())
CANDIDATES, ACTION = jnp.asarray(RELEASED["candidates"]), jnp.asarray(RELEASED["action"])


@pytest.mark.parametrize("case", RELEASED["cases"], ids=lambda case: f"{case['kernel']}-{case['temperature']}")
def test_drift_and_loss_are_those_of_the_released_code(case):
    algorithm = DriftQL(kernel=case["kernel"], temperature=case["temperature"])
    np.testing.assert_allclose(algorithm.drift(CANDIDATES, ACTION), case["drift"], atol=2e-5)
    assert float(algorithm.drift_loss(CANDIDATES, ACTION)) == pytest.approx(case["loss"], rel=1e-5)


def test_one_that_is_alone_near_the_data_stays_and_the_others_come():
    candidates = jnp.asarray([[[0.0, 0.0], [0.8, 0.8], [0.8, -0.8]]])
    drift = np.asarray(DriftQL(temperature=0.1).drift(candidates, jnp.zeros((1, 2))))[0]
    assert drift[1] @ np.asarray([-1.0, -1.0]) > 0
    assert drift[2] @ np.asarray([-1.0, 1.0]) > 0


def test_the_push_of_siblings_has_no_gradient():
    algorithm = DriftQL(temperature=0.5)
    gradient = jax.grad(algorithm.drift_loss)(CANDIDATES, ACTION)
    goal = jnp.clip(CANDIDATES + algorithm.drift(CANDIDATES, ACTION), -1, 1)
    np.testing.assert_allclose(gradient, 2 * (CANDIDATES - goal) / CANDIDATES.size, rtol=1e-4, atol=1e-7)
