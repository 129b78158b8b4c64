"""Sweeps over tasks, methods, seeds and hyperparameters: read a sweep file, execute its runs, summarise the results."""
