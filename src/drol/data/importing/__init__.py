"""Check files of other programs and import them as datasets."""
