"""Who may do what, and who did it: API keys, the roles of console users, and the audit."""
