"""Segments of the log: their life cycle, partitions and retention, and messages that must outlive one."""
