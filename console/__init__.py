"""The operator's console: sees everything below, acts only by calling it."""
