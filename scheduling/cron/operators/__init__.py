"""Schedules for operators: the HTTP API, the page of the console and its actions, metrics, findings."""
