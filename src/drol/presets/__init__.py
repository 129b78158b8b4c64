"""Settings for every task: from the paper, from the released commands, and for smaller scales."""
