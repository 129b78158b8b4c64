"""Template, style sheet, charts and tables that all pages share."""
