"""The command line: `drol <command>`."""

IMPORTED: list[str] = []  # modules given by `--import`; child processes import them too
