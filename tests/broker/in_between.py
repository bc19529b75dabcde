"""Commits of another session that come between two statements of a writer."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.broker.polling import eventually

# A stepwise writer that looks for transactions, undecided and decided ones: it waits for the table of these.
WAITING = (
    "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) "
    "WHERE l.relation = 'operation'::regclass AND NOT l.granted AND a.application_name = 'mqbroker-writer' "
    "AND a.query LIKE '%UNION ALL%'"
)


@contextmanager
def committed_in_between(other: psycopg.Connection) -> Iterator[None]:
    """What the other session, which is in autocommit, does in the block is committed when a writer looks for a
    transaction; whatever that has read before was read without it."""
    with psycopg.connect(other.info.dsn, password=other.info.password, autocommit=True) as watch, other.transaction():
        other.execute("LOCK TABLE operation IN ACCESS EXCLUSIVE MODE")
        yield
        eventually(lambda: watch.execute(WAITING.encode()).fetchall() != [(0,)])
