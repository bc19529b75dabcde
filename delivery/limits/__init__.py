"""Limits of a group: how many messages of a value are in flight, and are handed out per second: read `bounds` first."""
