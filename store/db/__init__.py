"""PostgreSQL as every app uses it: connections, statements, types of columns and parameters, caches, time limits."""
