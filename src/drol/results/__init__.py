"""Result rows: collecting, merging, comparing and choosing."""
