"""What a group has in flight, in the tables of its database: receipts, and bundles of several deliveries."""

from typing import Any

import psycopg

EXPIRE = """
WITH apart AS (
    UPDATE receipt AS r SET expires_at = now() FROM consumer_group AS g
    WHERE g.id = r.group_id AND g.name = %(group)s AND r.state = 'flight'
    RETURNING 1
),
bundled AS (
    UPDATE bundle AS b SET expires_at = now() FROM consumer_group AS g
    WHERE g.id = b.group_id AND g.name = %(group)s
    RETURNING 1
)
SELECT (SELECT count(*) FROM apart) + (SELECT count(*) FROM bundled)
"""
COUNT = """
SELECT
    (SELECT count(*) FROM receipt AS r WHERE r.group_id = g.id AND r.state = 'flight')
    + (
        SELECT coalesce(sum(length(replace(b.unsettled::bit(64)::text, '0', ''))), 0)
        FROM bundle AS b WHERE b.group_id = g.id
    )
FROM consumer_group AS g WHERE g.name = %(group)s
"""


def their_time_passes(connection: psycopg.Connection[Any], group: str) -> None:
    """Lets the invisible time of all that the group has in flight be over."""
    connection.execute(EXPIRE, {"group": group})


def count(connection: psycopg.Connection[Any], group: str) -> int:
    """The deliveries of the group that are not settled, also those whose time is over."""
    row = connection.execute(COUNT, {"group": group}).fetchone()
    return 0 if row is None else int(row[0])
