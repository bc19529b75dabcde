"""Reads of transactions: the history of one transaction, lists, and sums of undecided transactions."""
