"""Generate parts of the documentation site: reference, methods, examples, notebooks, formulas."""
