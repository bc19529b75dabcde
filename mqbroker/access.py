"""Who may call: API keys and console sessions."""
