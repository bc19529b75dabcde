"""What sends, as operators see it: producer groups, and what the broker sends by itself, outboxes and schedules."""
