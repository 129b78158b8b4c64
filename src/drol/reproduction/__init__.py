"""The paper's plan, tables, figures, propositions and mechanism."""
