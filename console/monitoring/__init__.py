"""Reads what the apps did, for operators: stats, metrics, traces of messages, and the health of a process."""
