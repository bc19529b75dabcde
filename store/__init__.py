"""What the broker keeps: topics, the commit log, consume queues, segments and retention; and the group commit."""
