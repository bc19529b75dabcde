"""Outgoing HTTP: how the broker calls a server that somebody else runs, for check-back and for push."""
