"""Run a policy from `drol export`; needs only NumPy.

policy = drol_runtime.load("bundle")
action = policy.act(observation, seed=0)
"""

from drol_runtime.bundle import Bundle, InputError, read_bundle
from drol_runtime.policy import Policy, check, load

__version__ = "0.1.0"
__all__ = ["Bundle", "InputError", "Policy", "check", "load", "read_bundle"]
