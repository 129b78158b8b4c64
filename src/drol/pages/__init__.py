"""Pages to look at: the report of one run or several, and runs while they train."""
