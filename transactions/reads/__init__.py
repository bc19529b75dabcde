"""Transactions as they are read: the history of one, lists of them, and sums of the undecided ones."""
