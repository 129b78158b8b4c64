"""Methods that are not in the paper's tables: later methods of other authors, and variants of DROL by this project."""
