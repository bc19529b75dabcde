"""PostgreSQL as every app uses it: connections, statements, types, and what a process caches of it, and the pace of large rows."""
