"""Names of topics and groups: their characters, and what is cached by name."""
