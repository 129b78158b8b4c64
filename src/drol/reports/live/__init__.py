"""Runs while they train, on a page that follows them: rows read as they arrive, and a server that only reads."""
