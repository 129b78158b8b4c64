"""What each number that a run logs means, in one line."""

MEANINGS = {
    "actor_loss": "what the actor's step goes down: its terms with their weights",
    "actor_q": "Q of the actor's own actions; far above Q of the data, it believes in actions that nobody took",
    "advantage": "Q of the data's actions less the value of their states",
    "alpha": "the weight of the constraint, which adapts itself",
    "alpha_loss": "what the step of that weight goes down",
    "bc_loss": "squared distance of the actor's action from the data's",
    "critic_loss": "squared error of Q against its target",
    "data_q": "Q of the data's actions",
    "distill_loss": "squared distance of the one-step actor from the flow that it copies",
    "divergence": "squared distance between the refined action and the flow's own",
    "drift_loss": "squared distance of candidates from where the data and the critic pull them",
    "flow_loss": "squared error of the velocity of the flow that clones the data",
    "guidance": "weight of the data's actions by their value, in the mean",
    "routed_bc_loss": "squared distance of the nearest candidate from the data's action, for each dimension",
    "routed_squared_norm": "squared distance of the nearest candidate from the data's action, all dimensions added up",
    "shortcut_loss": "squared error of long steps of the flow against two of half the length",
    "squared_error": "squared distance of the policy's action from the data's",
    "student_loss": "squared distance of the student's nearest candidate from the action that the critic chose",
    "value": "value of the data's states, without an action",
    "value_loss": "expectile error of that value against Q",
    "weight": "weight of the data's actions by their advantage, in the mean",
    "diagnostics/candidate_distance": "how far two candidates of a state are apart; 0 when they collapse into one",
    "diagnostics/candidate_divergence": "squared distance of candidates from their centre; 0 when they collapse",
    "diagnostics/candidate_squared_distance": "squared distance of two candidates of a state",
    "diagnostics/routed_bc_loss": "squared distance of the nearest candidate from the data's action, on one batch",
    "diagnostics/single_sample_error": "squared distance of one candidate, drawn by chance, from the data's action",
    "diagnostics/winner_entropy": "how evenly candidates win data; log K when all win alike, 0 when one wins all",
    "diagnostics/winner_largest_share": "share of the data that the most frequent winner gets; 1/K when all win alike",
}
OWN = "a number that the method logs itself"


def meaning_of(name: str) -> str:
    """Return what a logged number means; of validation data, the same as of training data."""
    kind, _, rest = name.rpartition("/")
    if kind == "validation":
        return f"{MEANINGS.get('diagnostics/' + rest, OWN)}; on validation data"
    return MEANINGS.get(name, OWN)
