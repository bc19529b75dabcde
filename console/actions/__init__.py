"""Actions of operators: one kind of change, made on one target, on selected targets, or on all that match."""
