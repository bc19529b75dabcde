"""Reads of the store: messages by id, key or time, their previews, and the progress of each reader."""
