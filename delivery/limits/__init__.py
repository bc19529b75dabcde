"""Limits of a group: how many messages of one value are in flight, and handed out per second. Begin with `bounds`."""
