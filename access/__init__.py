"""Access: what each caller may do, and what each has done: API keys, the roles of console users, and the audit."""
