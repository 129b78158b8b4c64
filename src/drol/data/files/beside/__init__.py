"""What other tools write beside the steps: names, spaces, tasks, splits."""
