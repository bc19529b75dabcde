"""What every use of the client runs through: connection, calls, retries, messages, producers and consumers."""
