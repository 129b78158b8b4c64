"""Experts trained online, for `drol data collect`."""
