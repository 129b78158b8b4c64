"""HTML reports of runs, comparisons, datasets and sweeps, and the live view."""
