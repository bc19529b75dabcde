"""The stored data of the broker: topics, the commit log, consume queues, segments and retention; the group commit."""
