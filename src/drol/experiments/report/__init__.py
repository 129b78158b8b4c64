"""What our pages are made of: the template, how figures look, tables, figures of runs and of data."""
