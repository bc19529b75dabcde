"""Sends: one message, or a batch of which all or none are stored; storing and publishing are one write."""
