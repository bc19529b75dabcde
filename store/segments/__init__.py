"""Segments of the commit log: the log itself, their life cycle, partitions and retention."""
