"""The limits of the code: figures and budgets of lines."""
