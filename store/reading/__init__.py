"""What is read of the store: messages by id, key or time, their previews, and how far each reader has come."""
