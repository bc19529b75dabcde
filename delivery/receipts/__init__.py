"""Receipts: the proof of each delivery, and how its consumer settles it."""
