"""The operations of producers on transactions: one class for each, which holds everything about the operation."""
