"""The web process: its server, its socket, and the parts that it starts and ends."""
