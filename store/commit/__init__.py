"""Group commit: the writer of a process, and the batch that it writes as one transaction."""
