"""The page of a dataset: what `drol data show` writes."""
