"""Push: receives for a subscription, posts the messages to its server, and settles them by the answer."""
