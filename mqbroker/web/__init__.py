"""The web process: its server, its socket, and what it starts and ends."""
