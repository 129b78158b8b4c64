"""Methods that the paper's tables do not have: rivals that came after it, and what we make of its limits."""
