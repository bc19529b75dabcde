"""Outboxes: tables in databases of producers, whose rows the broker takes and stores as messages.

A producer writes a row in its own transaction; each committed row is sent once. `docs/sql.md` is the contract.
"""
