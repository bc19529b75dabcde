"""A process of the broker: the bytes that it may hold at a time, and the heartbeat by which others know of it."""
