"""Compare runs: the statistics, two groups against each other, the page."""
