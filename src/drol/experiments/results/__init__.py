"""Results of runs in one schema: collected from runs, kept in files, merged and checked."""
