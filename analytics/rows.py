"""The rows that the export reads by SQL: one type per shape, its fields the columns in their order.

What Spark reads has its schema in analytics.tables.
"""

from typing import NamedTuple


class Backend(NamedTuple):
    """The server's process of a session, and the port of its client; None by a Unix socket."""

    pid: int
    port: int | None


class Undecided(NamedTuple):
    """The half messages, the check attempts and the timers that a snapshot holds."""

    halves: int
    checks: int
    timers: int
