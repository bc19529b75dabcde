"""Monitoring for operators: stats, metrics, traces of messages, findings, and the health of a process."""
