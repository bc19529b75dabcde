"""The settings of every session of the broker, whatever the defaults of the server, the database or the role are.

Each kind of session (of the message path, Django, the export, an outbox) adds the settings that it needs besides.
"""

from collections.abc import Mapping

# The server ends a session whose process has gone without closing it, and so frees its locks and its snapshot. The
# operating system's limits are hours.
KEEPALIVES = {"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"}
# Settings that change what a statement does or the form of its result, here and at the source of an outbox.
PLAIN = {
    # PostgreSQL compiles statements that it estimates to be costly (JIT). With `enable_seqscan=off` the estimates of
    # short statements are high: a look-up of 0.2 ms took 0.3 to 1 s, again in each session. JIT is on by default from
    # PostgreSQL 12 to 18.
    "jit": "off",
    # Each statement must have its own snapshot: a batch reads the last offsets of its queues after it has locked them.
    "default_transaction_isolation": "read committed",
    # A session that waits for the next request or notice must not be ended as idle.
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
    # An acknowledged write is on disk, and on the standbys that the server waits for.
    "synchronous_commit": "on",
    **KEEPALIVES,
}


def as_options(values: Mapping[str, str]) -> str:
    """The settings of a session, in the form of libpq's parameter `options`."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in values.items())
