"""Read the numbers of the released implementations into our networks."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from drol.algorithms import ALGORITHMS, ifql, parts, rebrac, routing, sorl
from drol.networks.critics import QEnsemble
from drol.networks.mlp import MLP
from drol.transition import Spec, Transition

FIXTURES = Path(__file__).parent / "fixtures"
VARIANTS = sorted(path.stem for path in FIXTURES.glob("*.npz"))


def read(name: str) -> dict[str, np.ndarray]:
    with np.load(FIXTURES / f"{name}.npz") as file:
        return dict(file)


@dataclass(frozen=True)
class Method:
    """How a released method maps to ours."""

    hyperparameters: dict[str, str]  # ours -> the name in the stored configuration
    networks: dict[str, Callable[[Any], Any]]  # the stored name -> where the network is in our state
    draws: Callable[[dict[str, np.ndarray]], tuple]  # the stored draws of one update -> arguments of our step
    metrics: dict[str, str]  # ours -> the stored name


def online(name: str) -> Callable[[Any], Any]:
    return lambda state: getattr(state, name).network


CRITICS = {"critic": online("critic"), "target_critic": lambda state: state.target_critic}
BELLMAN = {"critic_loss": "critic_loss", "data_q": "q_mean"}
COMMON = {"discount": "discount", "target_rate": "tau", "learning_rate": "lr"}
METHODS = {
    "drol": Method(
        {
            "bc_weight": "bc_coef", "q_weight": "q_coef", "num_candidates": "num_candidates", "q_aggregation": "q_agg",
            "actor_aggregation": "actor_q_agg", "normalise_q": "normalize_q_loss", **COMMON,
        },
        {"actor": online("actor"), **CRITICS},
        lambda draw: (routing.Draws(draw["latent"], draw["next_latent"]),),
        {"actor_loss": "actor_loss", "routed_bc_loss": "bc_loss", "actor_q": "q", **BELLMAN},
    ),
    "fql": Method(
        {
            "alpha": "alpha", "q_aggregation": "q_agg", "normalise_q": "normalize_q_loss",
            "flow_steps": "flow_steps", **COMMON,
        },
        {"flow": online("flow"), "actor": online("actor"), **CRITICS},
        lambda draw: (parts.FlowDraws(draw["flow_x0"], draw["flow_t"], draw["noise"], draw["next_noise"]),),
        {"flow_loss": "flow_loss", "distill_loss": "distill_loss", "actor_q": "q", **BELLMAN},
    ),
    "bc": Method(
        {"learning_rate": "lr"}, {"actor": online("actor")}, lambda _: (),
        {"actor_loss": "actor_loss", "squared_error": "mse"},
    ),
    "iql": Method(
        {"alpha": "alpha", "expectile": "expectile", **COMMON},
        {"actor": online("actor"), "value": online("value"), **CRITICS}, lambda _: (),
        {
            "value_loss": "value_loss", "value": "v_mean", "actor_loss": "actor_loss", "advantage": "adv",
            "critic_loss": "critic_loss",
        },
    ),
    "ifql": Method(
        {"expectile": "expectile", "flow_steps": "flow_steps", "num_samples": "num_samples", **COMMON},
        {"flow": online("flow"), "value": online("value"), **CRITICS},
        lambda draw: (ifql.Draws(draw["flow_x0"], draw["flow_t"]),),
        {"value_loss": "value_loss", "value": "v_mean", "flow_loss": "actor_loss", "critic_loss": "critic_loss"},
    ),
    "rebrac": Method(
        {
            "actor_bc_weight": "alpha_actor", "critic_bc_weight": "alpha_critic", "actor_noise": "actor_noise",
            "actor_noise_clip": "actor_noise_clip", **COMMON,
        },
        {
            "actor": lambda state: state.networks.network.actor, "critic": lambda state: state.networks.network.critic,
            "target_actor": lambda state: state.target.actor, "target_critic": lambda state: state.target.critic,
        },
        lambda draw: (rebrac.Draws(draw["next_noise"]),),
        BELLMAN,
    ),
    "deflow": Method(
        {
            "target_divergence": "target_divergence", "q_aggregation": "q_agg", "normalise_q": "normalize_q_loss",
            "flow_steps": "flow_steps", **COMMON,
        },
        {"flow": online("flow"), "refine": online("refinement"), "log_alpha": online("log_alpha"), **CRITICS},
        lambda draw: (parts.FlowDraws(draw["flow_x0"], draw["flow_t"], draw["noise"], draw["next_noise"]),),
        {
            "flow_loss": "flow_loss", "divergence": "refine_loss", "actor_q": "q", "alpha": "alpha",
            "alpha_loss": "alpha_loss", **BELLMAN,
        },
    ),
    "fbrac": Method(
        {"alpha": "alpha", "q_aggregation": "q_agg", "flow_steps": "flow_steps", **COMMON},
        {"flow": online("flow"), **CRITICS},
        lambda draw: (parts.FlowDraws(draw["flow_x0"], draw["flow_t"], draw["noise"], draw["next_noise"]),),
        {"actor_loss": "actor_loss", "flow_loss": "flow_loss", "actor_q": "q", **BELLMAN},
    ),
    "fawac": Method(
        {
            "alpha": "alpha", "q_aggregation": "q_agg", "flow_steps": "flow_steps", "largest_weight": "weight_cap",
            **COMMON,
        },
        {"flow": online("flow"), "value": online("value"), **CRITICS},
        lambda draw: (
            parts.FlowDraws(
                flow_noise=draw["flow_x0"], flow_time=draw["flow_t"], noise=draw["next_noise"],  # which it does not use
                next_noise=draw["next_noise"],
            ),
        ),
        {"actor_loss": "actor_loss", "value_loss": "value_loss", **BELLMAN},
    ),
    "sorl": Method(
        {
            "q_weight": "q_loss_coef", "flow_weight": "fm_coef", "shortcut_weight": "sc_coef", "q_aggregation": "q_agg",
            "gradient_norm": "grad_clip_norm", "released_optimiser": "leak", **COMMON,
        },
        {
            "actor": lambda state: state.networks.network.actor, "critic": lambda state: state.networks.network.critic,
            "target_actor": lambda state: state.target.actor, "target_critic": lambda state: state.target.critic,
        },
        lambda draw: (
            sorl.Draws(
                jnp.asarray(draw["critic_k"]), draw["next_noise"], jnp.asarray(draw["actor_k"]), draw["actor_noise"],
                draw["fm_x0"], draw["fm_t"], draw["sc_x0"], draw["sc_t"],
            ),
        ),
        {"actor_loss": "actor_loss", "flow_loss": "fm_loss", "shortcut_loss": "sc_loss", "actor_q": "q", **BELLMAN},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One stored problem, as ours."""

    reference: dict[str, np.ndarray]
    config: dict[str, Any]
    method: Method
    algorithm: Any
    state: Any
    batch: Transition
    draws: list[tuple]

    def step(self, state: Any, draws: tuple) -> tuple[Any, dict]:
        return jax.jit(self.algorithm.step)(state, self.batch, *draws)

    def metrics(self, number: int) -> dict[str, float]:
        return json.loads(str(self.reference[f"metrics/{number}"]))

    def stored_state(self, section: str, names: list[str] | None = None) -> Any:
        """Our state with the parameters of a section."""
        state = self.state
        for name in names or self.method.networks:
            where = self.method.networks[name]
            state = eqx.tree_at(where, state, stored_network(self.reference, f"{section}/{name}", where(state)))
        return state


def load(name: str) -> Problem:
    reference = read(name)
    config = json.loads(str(reference["config"]))
    method = METHODS[config["method"]]
    values = {ours: config[theirs] for ours, theirs in method.hyperparameters.items()}
    algorithm = ALGORITHMS[config["method"]](
        **values, hidden_sizes=tuple(config["hidden"]), batch_size=config["batch_size"]
    )
    batch = Transition(
        observation=reference["batch/observation"],
        action=reference["batch/action"],
        reward=reference["batch/reward"],
        continues=reference["batch/mask"],
        next_observation=reference["batch/next_observation"],
        next_action=reference["batch/next_action"],
        next_action_known=np.ones(config["batch_size"], np.float32),
    )
    draws = []
    for number in (1, 2, 3):
        prefix = f"draws/{number}/"
        draw = {
            key.removeprefix(prefix): jnp.asarray(value) for key, value in reference.items() if key.startswith(prefix)
        }
        draws.append(method.draws(draw))
    state = algorithm.init(jax.random.key(0), Spec((config["observation_dim"],), config["action_dim"]))
    problem = Problem(reference, config, method, algorithm, state, jax.tree.map(jnp.asarray, batch), draws)
    state = problem.stored_state("params")
    if config["method"] == "rebrac" and config["full_update"][0]:
        state = eqx.tree_at(lambda tree: tree.step, state, state.step + 1)
    return Problem(reference, config, method, algorithm, state, problem.batch, draws)


def stored_network(reference: dict[str, np.ndarray], prefix: str, like: Any) -> Any:
    """The parameters stored under a prefix, in the structure of our network."""
    if isinstance(like, jax.Array):
        return jnp.asarray(reference[prefix])
    if isinstance(like, QEnsemble):
        one = jax.tree.map(lambda leaf: leaf[0], like.members)
        members = [stored_mlp(reference, f"{prefix}/{number}", one) for number in (0, 1)]
        return eqx.tree_at(lambda tree: tree.members, like, jax.tree.map(lambda *leaves: jnp.stack(leaves), *members))
    return eqx.tree_at(lambda tree: tree.network, like, stored_mlp(reference, prefix, like.network))


def stored_mlp(reference: dict[str, np.ndarray], prefix: str, like: MLP) -> MLP:
    kernels = [jnp.asarray(reference[f"{prefix}/{index}/kernel"]) for index in range(len(like.layers))]
    biases = [jnp.asarray(reference[f"{prefix}/{index}/bias"]) for index in range(len(like.layers))]
    scales = [jnp.asarray(reference[f"{prefix}/{index}/norm_scale"]) for index in range(len(like.norms))]
    shifts = [jnp.asarray(reference[f"{prefix}/{index}/norm_bias"]) for index in range(len(like.norms))]

    def arrays(tree: MLP) -> list:
        norms = tree.norms if like.norms else ()
        return [
            *(layer.kernel for layer in tree.layers), *(layer.bias for layer in tree.layers),
            *(norm.scale for norm in norms), *(norm.bias for norm in norms),
        ]  # fmt: skip

    return eqx.tree_at(arrays, like, [*kernels, *biases, *scales, *shifts])
