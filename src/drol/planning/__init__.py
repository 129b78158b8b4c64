"""Planned runs: their folders, status, files and commands, and their execution."""
