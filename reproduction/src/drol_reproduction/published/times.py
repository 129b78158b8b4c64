"""The run times on the bars of the paper's figure, in milliseconds; the figure does not state the hardware.

The figure is on the authors' project page, https://muzhancun.github.io.
"""

TRAINING_STEP = {
    "sorl": 8.6,
    "fql": 5.0,
    "deflow": 4.8,
    "drol K=1": 4.7,
    "drol K=4": 3.5,
    "drol K=8": 4.8,
    "drol K=16": 4.9,
}
ACTION = {"sorl": 0.53, "fql": 0.17, "deflow": 0.54, "drol": 0.16}
