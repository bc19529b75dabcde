"""The servers of a checkout that has none: a private PostgreSQL and Valkey, and the processes beside them."""
