"""Runs a broker and its servers on one machine: private PostgreSQL and Valkey, supervisor, and the command line."""
