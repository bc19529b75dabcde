"""What producers do with transactions: one class per operation, which holds all that is true of it."""
