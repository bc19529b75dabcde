"""What holds the house to its limits: figures, budgets."""
