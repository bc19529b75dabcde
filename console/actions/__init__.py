"""What operators do from the console: one change, made on one thing, on the selected, or on all that match."""
