"""The servers behind a broker on one machine: a private PostgreSQL and a private Valkey."""
