"""The tables of settings of the DROL paper's results, with the rows of the original tables; None: unknown."""

# DROL paper, table "Benchmark-level hyperparameters": alpha, K of DROL*, gamma, q_agg. K of DROL(16) is always 16.
# fmt: off
DROL = {
    "antmaze-giant":          (0.03,  1, 0.995, "min"),
    "antmaze-large":          (0.03, 16, 0.995, "min"),
    "antsoccer-arena":        (0.1,   4, 0.995, "mean"),
    "humanoidmaze-medium":    (0.3,  16, 0.995, "mean"),
    "humanoidmaze-large":     (0.3,   4, 0.995, "mean"),
    "cube-single":            (10.0, 16, 0.99,  "mean"),
    "cube-double":            (3.0,  64, 0.99,  "mean"),
    "scene":                  (3.0,  64, 0.99,  "mean"),
    "puzzle-3x3":             (0.3,  32, 0.99,  "mean"),
    "puzzle-4x4":             (10.0, 64, 0.99,  "mean"),
    "antmaze-umaze":          (0.3,  16, 0.99,  "mean"),
    "antmaze-umaze-diverse":  (0.1,  16, 0.99,  "mean"),
    "antmaze-medium-play":    (0.1,  16, 0.99,  "mean"),
    "antmaze-medium-diverse": (0.1,  16, 0.99,  "mean"),
    "antmaze-large-play":     (0.03, 16, 0.99,  "mean"),
    "antmaze-large-diverse":  (0.03, 16, 0.99,  "mean"),
    "pen-human":              (1.0,   4, 0.99,  "min"),
    "pen-cloned":             (1.0,  16, 0.99,  "min"),
    "pen-expert":             (1.0,  16, 0.99,  "min"),
    "door":                   (10.0,  8, 0.99,  "min"),
    "hammer":                 (3.0,  16, 0.99,  "min"),
    "relocate":               (10.0, 32, 0.99,  "min"),
}

# Differences of the official commands from this table.
DROL_DIFFERENCES = {
    ("released", "antmaze-large-play"):        ("bc_weight", 0.1),
    ("released", "antmaze-large-diverse"):     ("bc_weight", 0.1),
    ("released-tuned", "antmaze-umaze"):       ("num_candidates", 2),
    ("released-tuned", "antmaze-medium-play"): ("num_candidates", 32),
    ("released-tuned", "pen-human"):           ("num_candidates", 16),
    ("released-tuned", "hammer"):              ("num_candidates", 8),
}

# OGBench: FQL paper, table 6 (antsoccer-arena: table 7) and the official commands of FQL, DeFlow and SORL.
OGBENCH_COLUMNS = (
    ("iql", "alpha"), ("rebrac", "actor_bc_weight"), ("rebrac", "critic_bc_weight"), ("fawac", "alpha"),
    ("fbrac", "alpha"), ("ifql", "num_samples"), ("fql", "alpha"), ("deflow", "target_divergence"),
    ("sorl", "q_weight"),
)
OGBENCH = {  # data, gamma, q_agg     IQL    ReBRAC         FAWAC  FBRAC IFQL FQL   DeFlow SORL
    "antmaze-large":       ("navigate", 0.99,  "min",  (10.0, 0.003, 0.01, 3.0,  3.0,   32, 10.0,   0.01,  500.0)),
    "antmaze-giant":       ("navigate", 0.995, "min",  (10.0, 0.003, 0.01, 3.0,  10.0,  32, 10.0,   0.01,  500.0)),
    "humanoidmaze-medium": ("navigate", 0.995, "mean", (10.0, 0.01,  0.01, 3.0,  30.0,  32, 30.0,   0.001, 100.0)),
    "humanoidmaze-large":  ("navigate", 0.995, "mean", (10.0, 0.01,  0.01, 3.0,  30.0,  32, 30.0,   0.001, 500.0)),
    "antsoccer-arena":     ("navigate", 0.995, "mean", (1.0,  0.01,  0.01, None, None,  64, 10.0,   0.01,  500.0)),
    "cube-single":         ("play",     0.99,  "mean", (1.0,  1.0,   0.0,  1.0,  100.0, 32, 300.0,  0.001, 10.0)),
    "cube-double":         ("play",     0.99,  "mean", (0.3,  0.1,   0.0,  0.3,  100.0, 32, 300.0,  0.001, 50.0)),
    "scene":               ("play",     0.99,  "mean", (10.0, 0.1,   0.01, 0.3,  100.0, 32, 300.0,  0.001, 100.0)),
    "puzzle-3x3":          ("play",     0.99,  "mean", (10.0, 0.3,   0.01, 0.3,  100.0, 32, 1000.0, 0.005, None)),
    "puzzle-4x4":          ("play",     0.99,  "mean", (3.0,  0.3,   0.01, 0.3,  300.0, 32, 1000.0, 0.005, None)),
}

# D4RL: FAWAC, FBRAC, IFQL from the FQL paper's table 6, FQL and DeFlow from their official commands; ReBRAC and IQL
# from CORL's configurations. SORL's authors did not run it on D4RL.
D4RL_COLUMNS = (
    ("fawac", "alpha"), ("fbrac", "alpha"), ("ifql", "num_samples"), ("fql", "alpha"), ("deflow", "target_divergence"),
    ("rebrac", "actor_bc_weight"), ("rebrac", "critic_bc_weight"), ("iql", "alpha"), ("iql", "expectile"),
)
D4RL = {  #                 FAWAC FBRAC    IFQL FQL      DeFlow  ReBRAC         IQL
    "antmaze-umaze":          (3.0,  10.0,    32,  10.0,    0.015, 0.003, 0.002,  10.0, 0.9),
    "antmaze-umaze-diverse":  (3.0,  10.0,    32,  10.0,    0.015, 0.003, 0.001,  10.0, 0.9),
    "antmaze-medium-play":    (3.0,  10.0,    32,  10.0,    0.015, 0.001, 0.0005, 10.0, 0.9),
    "antmaze-medium-diverse": (3.0,  10.0,    32,  10.0,    0.015, 0.001, 0.0,    10.0, 0.9),
    "antmaze-large-play":     (3.0,  1.0,     32,  3.0,     0.015, 0.002, 0.001,  10.0, 0.9),
    "antmaze-large-diverse":  (3.0,  1.0,     32,  3.0,     0.015, 0.002, 0.002,  10.0, 0.9),
    "pen-human":              (0.03, 30000.0, 32,  10000.0, 0.01,  0.1,   0.5,    3.0,  0.8),
    "pen-cloned":             (0.3,  10000.0, 32,  10000.0, 0.01,  0.05,  0.5,    3.0,  0.8),
    "pen-expert":             (0.1,  30000.0, 32,  3000.0,  0.01,  0.01,  0.01,   3.0,  0.8),
    "door-human":             (1.0,  30000.0, 32,  30000.0, 0.001, 0.1,   0.1,    3.0,  0.8),
    "door-cloned":            (1.0,  10000.0, 128, 30000.0, 0.001, 0.01,  0.1,    3.0,  0.8),
    "door-expert":            (3.0,  30000.0, 32,  30000.0, 0.001, 0.05,  0.01,   3.0,  0.8),
    "hammer-human":           (3.0,  30000.0, 32,  30000.0, 0.001, 0.01,  0.5,    3.0,  0.8),
    "hammer-cloned":          (0.03, 10000.0, 32,  10000.0, 0.001, 0.1,   0.5,    3.0,  0.8),
    "hammer-expert":          (3.0,  30000.0, 32,  30000.0, 0.001, 0.01,  0.01,   3.0,  0.8),
    "relocate-human":         (0.3,  30000.0, 128, 10000.0, 0.001, 0.1,   0.01,   3.0,  0.8),
    "relocate-cloned":        (0.1,  3000.0,  32,  30000.0, 0.001, 0.1,   0.01,   3.0,  0.8),
    "relocate-expert":        (1.0,  30000.0, 32,  30000.0, 0.001, 0.05,  0.01,   3.0,  0.8),
}
# fmt: on

OUTSIDE_GRID = "it is read from a scan and lies outside the stated grid 0.3, 1, 3, 10; tune over that grid"
LOST_ZERO = "the scan lost a zero elsewhere in this row; tune over 1000, 3000, 10000, 30000"
DOUBTFUL = {  # the alphas that may have been misread
    ("fawac", "pen-human"): OUTSIDE_GRID,
    ("fawac", "pen-expert"): OUTSIDE_GRID,
    ("fawac", "hammer-cloned"): OUTSIDE_GRID,
    ("fawac", "relocate-cloned"): OUTSIDE_GRID,
    ("fbrac", "relocate-cloned"): LOST_ZERO,
}
WHY_UNKNOWN = {
    "fawac": "the row is missing from the only copy of FQL's table; tune on task4 over 0.3, 1, 3, 10",
    "fbrac": "the row is missing from the only copy of FQL's table; tune on task4 over 1, 3, 10, 30, 100, 300",
    "sorl": "its authors did not run it here",
}
# Notes on gaps in the sources and how they are filled: algorithms, scope (groups, "play", "d4rl" or "all"), text.
CORL = "with 500,000 updates; the paper copies the scores of CORL, which has 1,000,000 updates, "
REMARKS = (
    (
        ("drol-equation",),
        ("all",),
        "alpha is the number of the paper's table and multiplies raw Q, as the paper prints it; in the released code "
        "it multiplies behaviour cloning (drol). No official command runs this form: the presets released and "
        "released-tuned have the printed numbers, too",
    ),
    (
        ("fawac",),
        ("all",),
        "its paper does not say how V is had, whether weights are capped or which critics are in them; a network "
        "fitted to the target critics, 100 and the mean of the online critics are used",
    ),
    (("fawac", "fbrac"), ("all",), "q_aggregation is inferred, its paper says that it shares the defaults of FQL"),
    (
        ("ifql",),
        ("play",),
        "hidden_sizes is inferred; its paper says that it shares the defaults of IQL, which has 256x4 here, its code "
        "has 512x4",
    ),
    (
        ("sorl",),
        ("all",),
        "how many steps and samples its published scores act with is unknown; 8 steps and one sample are used",
    ),
    (
        ("sorl",),
        ("antsoccer-arena",),
        "the command for the default task leaves out discount 0.995, those for all tasks have it",
    ),
    (("sorl",), ("puzzle-3x3", "puzzle-4x4"), "discount and q_aggregation are inferred from FQL"),
    (
        ("rebrac",),
        ("antmaze-large", "antmaze-giant"),
        "a later reprint has actor_bc_weight 0.001, which is outside the stated grid",
    ),
    (("bc",), ("d4rl",), f"own networks, {CORL}256x2 ReLU networks, a tanh actor and standardised observations"),
    (
        ("iql",),
        ("d4rl",),
        f"own networks, coefficients of CORL, {CORL}256x2 ReLU networks, a learned deviation, a decaying actor rate "
        "and standardised observations",
    ),
    (
        ("rebrac",),
        ("d4rl",),
        f"own networks, coefficients of CORL, {CORL}256x3 ReLU networks and, in mazes, a critic rate of 5e-5 and "
        "rewards times 100 without shift, to which its critic_bc_weight belongs",
    ),
)
SOURCES = {
    "paper": "DROL paper, table of benchmark-level hyperparameters",
    "released": "official commands of DROL, commit 7e669b0",
    "fql": "official commands of FQL",
    "deflow": "official commands of DeFlow",
    "sorl": "official commands of SORL",
    "not run": "none: the authors did not run it here",
    "antsoccer-arena": "FQL paper, table 7 and text, and a later reprint",
    "scan": "FQL paper, table 6 (scanned copy) and text",
    "corl": "configurations of CORL",
}
