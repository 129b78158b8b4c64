"""The paper's plan, tables, figures, propositions and mechanism."""

__version__ = "0.1.0"
