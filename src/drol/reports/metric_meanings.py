"""The meaning of each logged metric, in one line."""

MEANINGS = {
    "actor_loss": "the loss of the actor: the weighted sum of its terms",
    "actor_q": "Q of the actor's actions; far above Q of the data, it overestimates actions outside the data",
    "advantage": "Q of the data's actions minus the value of their states",
    "alpha": "the weight of the constraint, which adapts itself",
    "alpha_loss": "the loss of that weight",
    "bc_loss": "squared distance of the actor's action from the data's",
    "critic_loss": "squared error of Q against its target",
    "data_q": "Q of the data's actions",
    "distill_loss": "squared distance of the one-step actor from the flow that it copies",
    "divergence": "squared distance between the refined action and the flow's own",
    "drift_loss": "squared distance of candidates from where the data and the critic pull them",
    "flow_loss": "squared velocity error of the flow that clones the data",
    "guidance": "mean weight of the data's actions by their value",
    "routed_bc_loss": "squared distance of the nearest candidate from the data's action, for each dimension",
    "routed_squared_norm": "squared distance of the nearest candidate from the data's action, all dimensions added up",
    "shortcut_loss": "squared error of long steps of the flow against two of half the length",
    "squared_error": "squared distance of the policy's action from the data's",
    "student_loss": "squared distance of the student's nearest candidate from the action that the critic chose",
    "value": "value of the data's states, without an action",
    "value_loss": "expectile error of that value against Q",
    "weight": "mean weight of the data's actions by their advantage",
    "diagnostics/candidate_distance": "distance of two candidates of a state; 0 when all collapse into one",
    "diagnostics/candidate_divergence": "squared distance of candidates from their centre; 0 when they collapse",
    "diagnostics/candidate_squared_distance": "squared distance of two candidates of a state",
    "diagnostics/routed_bc_loss": "squared distance of the nearest candidate from the data's action, on one batch",
    "diagnostics/single_sample_error": "squared distance of one random candidate from the data's action",
    "diagnostics/winner_entropy": "entropy of the winners; log K if all win equally often, 0 if one wins always",
    "diagnostics/winner_largest_share": "share of the data of the most frequent winner; 1/K if all win equally often",
}
OWN = "a metric of this method"


def meaning_of(name: str) -> str:
    """Return the meaning of a logged metric; validation metrics have the meaning of the training metric."""
    kind, _, rest = name.rpartition("/")
    if kind == "validation":
        return f"{MEANINGS.get('diagnostics/' + rest, OWN)}; on validation data"
    return MEANINGS.get(name, OWN)
