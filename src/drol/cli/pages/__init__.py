"""`drol report` and `drol watch`."""
