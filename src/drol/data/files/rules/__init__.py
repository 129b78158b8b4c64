"""Rules that make something of columns: rewards of formulas and goals, time that is looked at, values filled in."""
