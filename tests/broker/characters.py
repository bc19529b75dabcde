"""Who appears in the tests: names of a test's own, and what their messages say."""

import secrets
from collections.abc import Iterable

import psycopg
from mqbroker_client import Entry

from tests.broker.running import RunningBroker
from webhooks.signing import make_secret

INSERT_GROUP = """
INSERT INTO producer_group (name, reject_transaction_message, checks_paused) VALUES (%s, false, false)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id
"""
INSERT_ENDPOINT = """
INSERT INTO endpoint (group_id, url, max_batch, timeout_seconds, concurrency, secret, state, failures)
VALUES (%s, %s, %s, %s, 16, %s, 'healthy', 0)
"""


def name(stem: str) -> str:
    """A name that no other test has."""
    return f"{stem}-{secrets.token_hex(4)}"


def bodies(entries: Iterable[Entry]) -> list[bytes]:
    """What the messages say, in their order."""
    return [entry.body for entry in entries]


def register(broker: RunningBroker, group: str, url: str, *, max_batch: int = 1, timeout_seconds: float = 1) -> str:
    """Has a producer group asked at a URL; gives the secret that signs."""
    secret = make_secret()
    with psycopg.connect(broker.database_url) as connection:
        [group_id] = connection.execute(INSERT_GROUP, [group]).fetchone() or [None]
        connection.execute(INSERT_ENDPOINT, [group_id, url, max_batch, timeout_seconds, secret])
    return secret
