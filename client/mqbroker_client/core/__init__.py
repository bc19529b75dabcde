"""The base of the client: connection, calls, retries, messages, producers and consumers."""
