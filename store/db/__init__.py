"""PostgreSQL as every app uses it: connections, statements, types, what a process caches, the pace of large rows."""
