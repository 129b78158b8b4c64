"""DROL with choice: routing preserves the support, the critic chooses within it, one pass executes the choice.

    c_k  = clip f(s, z_k),  k* = argmin_{k <= K} |c_k - a|^2,  L_support = |f(s, z_k*) - a|^2 / d_a             (route)
    b(s) = c_j*,  j* = argmax_{j <= N} agg_e Q_e(s, c_j)                                                       (choose)
    L_Q  = mean_e (Q_e(s, a) - r - gamma m agg_e Qbar_e(s', b(s')))^2                                  (bellman_target)
    u_i  = clip g(s, w_i),  i* = argmin_i |u_i - b(s)|^2,  L_student = |g(s, w_i*) - b(s)|^2 / d_a        (clone_chosen)

m = 1 - terminal (`batch.continues`). No loss moves the support actor f towards Q, so there is no weight of cloning
against Q. The policy acts with b(s). With `one_pass` it acts with one draw of the student g with averaged weights.
No paper describes it; docs/beyond.md has its results. Options for ablations, all off by default:

    relaxed         with probability epsilon a row trains a random candidate in place of the nearest            (route)
    climb           a + climb spread(s) grad_a Q / max(|grad_a Q|, E|grad_a Q|) replaces the cloned action a  (climbed)
    support_weight  z(agg Q_j) - support_weight z(distance of c_j to the nearest other candidate) replaces agg Q_j in b,
                    where z standardises over the N candidates of the state                                      (score)
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from drol.algorithms.base import SMALL, Algorithm, hyperparameter
from drol.algorithms.parts import Trainable, aggregate, best_action, clip, critic_loss, descend, polyak, trainable
from drol.algorithms.routing import candidate_diagnostics, draw_latents, nearest_latent
from drol.errors import InputError
from drol.networks.actors import LatentActor
from drol.networks.critics import QEnsemble
from drol.networks.sampler import AGGREGATIONS, Sampler, latent_sampler
from drol.transition import Metrics, Spec, Transition

CHOOSERS = ("mean", "min", "lcb")


class Policy(eqx.Module):
    """The networks that `act` needs: the support actor, the critic that chooses, and the student for one pass."""

    actor: LatentActor
    critic: QEnsemble
    student: LatentActor | None


class State(eqx.Module):
    """The state of training; `student` and `average` are None if no student is trained."""

    actor: Trainable[LatentActor]
    critic: Trainable[QEnsemble]
    target_critic: QEnsemble
    student: Trainable[LatentActor] | None
    average: LatentActor | None

    @property
    def policy(self) -> Policy:
        return Policy(self.actor.network, self.critic.network, self.average)


class Draws(eqx.Module):
    """All randomness of one update."""

    latent: Array  # z, [batch, K or N, action], the larger of the two
    next_latent: Array  # z', [batch, N, action]
    student_latent: Array  # w, [batch, student's K, action]
    relaxed: Array  # uniform in [0, 1), [batch]; a row below epsilon trains a random candidate


class DROLChoice(Algorithm):
    """Routed cloning keeps the support, the critic chooses within it, a student executes the choice in one pass.

    No paper describes it; docs/beyond.md has its results.
    """

    num_candidates: int = hyperparameter(
        16, "K, candidates of the support actor among which a data action finds the nearest", minimum=1, maximum=65536
    )
    target_candidates: int = hyperparameter(
        4,
        "N, candidates from which the critic chooses, in the Bellman target and at test",
        minimum=1,
        maximum=65536,
    )
    student_candidates: int = hyperparameter(
        4,
        "K of the student that learns the chosen actions for one-pass acting; 0 trains no student",
        minimum=0,
        maximum=65536,
    )
    one_pass: bool = hyperparameter(False, "act by one draw of the student instead of the best of N candidates")
    chooser: str = hyperparameter(
        "mean",
        "how the critics make one value to choose by; lcb is mean minus half a standard deviation",
        choices=CHOOSERS,
    )
    q_aggregation: str = hyperparameter(
        "mean", "agg, how the target critics make one value in the Bellman target", choices=CHOOSERS
    )
    num_critics: int = hyperparameter(2, "critics in the ensemble", minimum=1, maximum=64)
    support_weight: float = hyperparameter(
        0.0, "weight of the distance to the nearest other candidate in the choice, both standardised", minimum=0
    )
    relaxed: float = hyperparameter(
        0.0, "epsilon, share of the cloning gradient that goes to all candidates alike", minimum=0, maximum=1
    )
    climb: float = hyperparameter(
        0.0, "longest shift of the cloned action along the critic's gradient, in spreads of the candidates", minimum=0
    )
    average_rate: float = hyperparameter(
        0.002, "how fast the averaged student, which acts, follows the trained one", minimum=0, maximum=1
    )
    discount: float = hyperparameter(0.99, "gamma, discount of the Bellman target", minimum=0, maximum=1)
    target_rate: float = hyperparameter(0.005, "tau, how fast the target critic follows", minimum=0, maximum=1)
    learning_rate: float = hyperparameter(3e-4, "step size of Adam, for all networks", minimum=1e-12, maximum=1)
    batch_size: int = hyperparameter(256, "B, transitions in one update", minimum=1, maximum=1_000_000)
    hidden_sizes: tuple[int, ...] = hyperparameter(
        (512, 512, 512, 512), "widths of the hidden layers of all networks", minimum=1, maximum=65536
    )
    critic_hidden_sizes: tuple[int, ...] = hyperparameter(
        (), "widths of the hidden layers of the critics; as hidden_sizes if none are given", minimum=1, maximum=65536
    )

    acting: ClassVar = ("one_pass", "chooser", "support_weight")
    choosing: ClassVar = ("chooser", "support_weight")
    presets: ClassVar = {"laptop": SMALL}

    def __check_init__(self) -> None:
        if self.one_pass and self.student_candidates == 0:
            raise InputError("one_pass is true, but student_candidates is 0; train a student, or give one_pass false")

    @property
    def default_best_of(self) -> int:
        return 1 if self.one_pass else self.target_candidates

    def init(self, key: Array, spec: Spec) -> State:
        actor_key, critic_key, student_key = jax.random.split(key, 3)
        critic = QEnsemble(critic_key, spec, self.critic_hidden_sizes or self.hidden_sizes, self.num_critics)
        actor = LatentActor(actor_key, spec, self.hidden_sizes)
        student = LatentActor(student_key, spec, self.hidden_sizes) if self.student_candidates else None
        return State(trainable(actor), trainable(critic), critic, student and trainable(student), student)

    def update(self, state: State, batch: Transition, key: Array) -> tuple[State, Metrics]:
        return self.step(state, batch, self.draw(batch, key))

    def act(self, policy: Policy, observation: Array, key: Array, best_of: int | None = None) -> Array:
        latent = draw_latents(key, (self.check_act(observation, best_of), policy.actor.action_size))
        if self.one_pass:
            return best_action(policy.critic, observation, clip(self.student(policy).candidates(observation, latent)))
        return self.choose(policy.critic, observation, clip(policy.actor.candidates(observation, latent)))

    def sampler(self, policy: Policy) -> Sampler:
        if self.one_pass:
            return latent_sampler(self.student(policy), policy.critic, "ball")
        if self.chooser not in AGGREGATIONS or self.support_weight > 0:
            raise InputError(
                f"chooser is {self.chooser} and support_weight is {self.support_weight}; only a policy that chooses by "
                "mean or min with support_weight 0, or acts in one pass, can be exported"
            )
        return latent_sampler(policy.actor, policy.critic, "ball", self.chooser)

    def student(self, policy: Policy) -> LatentActor:
        """Return the actor of one-pass acting."""
        assert policy.student is not None  # __check_init__
        return policy.student

    def draw(self, batch: Transition, key: Array) -> Draws:
        latent_key, next_key, student_key, relaxed_key = jax.random.split(key, 4)
        batch_size, action_size = batch.action.shape
        count = max(self.num_candidates, self.target_candidates if self.student_candidates else 1)
        return Draws(
            latent=draw_latents(latent_key, (batch_size, count, action_size)),
            next_latent=draw_latents(next_key, (batch_size, self.target_candidates, action_size)),
            student_latent=draw_latents(student_key, (batch_size, self.student_candidates, action_size)),
            relaxed=jax.random.uniform(relaxed_key, (batch_size,)),
        )

    def step(self, state: State, batch: Transition, draws: Draws) -> tuple[State, Metrics]:
        """Do one update with given draws; all losses and the target use the networks from before it."""
        actor_before, critic_before = state.actor.network, state.critic.network
        candidates = clip(actor_before.candidates(batch.observation, draws.latent))  # [batch, K or N, action]
        goal = jax.lax.cond(
            self.climb > 0, lambda: self.climbed(critic_before, batch, candidates), lambda: batch.action
        )
        winner = self.route(candidates[:, : self.num_candidates], goal, draws)
        target = self.bellman_target(state, batch, draws.next_latent)
        actor, metrics = descend(
            state.actor, self.learning_rate, cloning_loss, batch.observation, goal, winner, "routed_bc_loss"
        )
        critic, critic_metrics = descend(state.critic, self.learning_rate, critic_loss, batch, target)
        target_critic = polyak(critic_before, state.target_critic, self.target_rate)
        student, average, metrics = state.student, state.average, metrics | critic_metrics
        if student is not None:
            chosen = self.choose_each(critic_before, batch.observation, candidates[:, : self.target_candidates])
            student, student_metrics = self.clone_chosen(student, batch.observation, chosen, draws.student_latent)
            average = polyak(student.network, average, self.average_rate)
            metrics |= student_metrics
        return State(actor, critic, target_critic, student, average), metrics

    def route(self, candidates: Array, goal: Array, draws: Draws) -> Array:
        """Return the latent [batch, action] that learns each action: of the nearest or of a random candidate."""
        winner = nearest_latent(candidates, draws.latent[:, : self.num_candidates], goal)
        return jnp.where((draws.relaxed < self.relaxed)[:, None], draws.latent[:, 0], winner)

    def climbed(self, critic: QEnsemble, batch: Transition, candidates: Array) -> Array:
        """Return the data actions, shifted along the critic's gradient by at most `climb` spreads of the candidates."""
        gradient = jax.grad(lambda action: critic(batch.observation, action).mean(0).sum())(batch.action)
        length = jnp.linalg.norm(gradient, axis=-1, keepdims=True)  # [batch, 1]
        spread = jnp.sqrt(candidates.var(1).sum(-1, keepdims=True))  # [batch, 1]
        return clip(batch.action + self.climb * spread * gradient / jnp.maximum(length, length.mean() + 1e-12))

    def choose(self, critic: QEnsemble, observation: Array, actions: Array) -> Array:
        """Return the best [action] of several actions [N, action] for one observation."""
        if len(actions) == 1:
            return actions[0]
        return actions[self.score(aggregate(critic(observation, actions), self.chooser), actions).argmax()]

    def choose_each(self, critic: QEnsemble, observation: Array, actions: Array) -> Array:
        """Return the best [batch, action] of the actions [batch, N, action] for each observation of a batch."""
        return jax.vmap(lambda one, several: self.choose(critic, one, several))(observation, actions)

    def score(self, q: Array, actions: Array) -> Array:
        """Return the scores [N] that the choice compares: standardised Q, reduced for isolated candidates."""
        return standardise(q) - self.support_weight * standardise(distance_to_nearest(actions))

    def bellman_target(self, state: State, batch: Transition, next_latent: Array) -> Array:
        """Return y [batch]: the online critic chooses the next action, the target critic values it."""
        candidates = clip(state.actor.network.candidates(batch.next_observation, next_latent))  # [batch, N, action]
        next_action = self.choose_each(state.critic.network, batch.next_observation, candidates)
        next_q = aggregate(state.target_critic(batch.next_observation, next_action), self.q_aggregation)
        return batch.reward + self.discount * batch.continues * next_q

    def clone_chosen(
        self, student: Trainable[LatentActor], observation: Array, chosen: Array, latent: Array
    ) -> tuple[Trainable[LatentActor], Metrics]:
        """Take one step of routed cloning of the chosen actions."""
        winner = nearest_latent(clip(student.network.candidates(observation, latent)), latent, chosen)
        return descend(student, self.learning_rate, cloning_loss, observation, chosen, winner, "student_loss")

    def diagnose(self, state: State, batch: Transition, key: Array) -> Metrics:
        latent = self.draw(batch, key).latent[:, : self.num_candidates]
        return candidate_diagnostics(clip(state.actor.network.candidates(batch.observation, latent)), batch.action)


def cloning_loss(
    actor: LatentActor, observation: Array, action: Array, latent: Array, name: str
) -> tuple[Array, Metrics]:
    """Return `E |f(s, z) - a|^2 / d_a` of the unclipped output, so that outputs outside the bounds feel a gradient."""
    loss = jnp.square(actor(observation, latent) - action).mean()
    return loss, {name: loss}


def standardise(values: Array) -> Array:
    """Return values [N] with mean 0 and standard deviation 1; equal values stay equal."""
    centred = values - values.mean()
    return centred / jnp.maximum(jnp.sqrt(jnp.square(centred).mean()), 1e-12)


def distance_to_nearest(actions: Array) -> Array:
    """Return the distance [N] of each of several actions [N, action] to the nearest of the others."""
    squared = jnp.square(actions[:, None] - actions).sum(-1)  # [N, N]
    return jnp.sqrt(jnp.where(jnp.eye(len(actions), dtype=bool), jnp.inf, squared).min(-1))
