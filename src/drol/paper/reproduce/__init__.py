"""The paper's experiments by command: what has to be run, what is done, and doing it."""
