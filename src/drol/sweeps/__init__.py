"""Sweeps: a file says which runs, a queue does them, and what came of them is looked at."""
