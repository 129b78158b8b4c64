"""The command line: `drol <command>`."""

IMPORTED: list[str] = []  # the modules that `--import` named; what this command starts imports them too
