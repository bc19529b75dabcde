"""What `mqbroker.settings` is made of: how variables are read, what Django has of it, and groups of settings."""
