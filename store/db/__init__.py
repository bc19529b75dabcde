"""PostgreSQL as every app uses it: connections, statements, types; names, what a process caches, pacing."""
