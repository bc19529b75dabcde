"""What is kept: topics, the commit log, consume queues, segments and retention, written by group commit."""
