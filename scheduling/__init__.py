"""When a message becomes visible: at once, after a delay, or never, when it is recalled."""
