"""Outgoing HTTP: calls of servers that others run, for check-back and for push."""
