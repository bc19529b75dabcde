"""What the broker sends by itself, as operators see it: outboxes and schedules."""
