"""What every session of the broker's own is set to, whatever its server, its database or its role has by default.

Each kind of session (the message path's, Django's, the export's, an outbox's) adds what it needs beyond that.
"""

from collections.abc import Mapping

# The server ends the session of a process that is gone without a word, its locks and its snapshot with it. The system's
# own limits are hours.
KEEPALIVES = {"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"}
# What a statement does and the form of its result, at our database and at the source of an outbox.
PLAIN = {
    # PostgreSQL compiles what it takes for costly, and with `enable_seqscan=off` short statements seem so: 0.3 s to 1 s
    # for a look-up of 0.2 ms, again in each session. It is on by default from PostgreSQL 12 to 18.
    "jit": "off",
    # A batch reads the ends of its queues in statements that are newer than its locks.
    "default_transaction_isolation": "read committed",
    # A session that waits for the next request or notice is not idle for nothing.
    "idle_session_timeout": "0",
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
}
OURS = {
    **PLAIN,
    # What is acknowledged is on the disk, and with the standbys that the server waits for.
    "synchronous_commit": "on",
    **KEEPALIVES,
}


def as_options(values: Mapping[str, str]) -> str:
    """Settings of a session, as libpq takes them."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in values.items())
