"""Access: the rights of each caller and a record of each change: API keys, roles of console users, and the audit."""
