"""What the documentation site makes when it is built: reference, methods, examples, notebooks, formulas."""
