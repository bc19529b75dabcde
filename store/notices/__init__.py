"""Notices between processes: of messages that became visible, and of changes of the configuration."""
