"""A pooler between the broker and PostgreSQL: which sessions go through it, and what these are set to.

A pooler passes no settings of a session on, and with transaction pooling none of its locks, notices and plans is a
client's own. So what each session is set to is a default of the role in the database, which `manage.py prepare` sets;
what needs a session of its own goes past the pooler, to DIRECT_DATABASE_URL.
"""

from collections.abc import Mapping
from typing import NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from store.db.statements import Statement

NONE, SESSION, TRANSACTION = WAYS = ("none", "session", "transaction")


class LockTimeout(NamedTuple):
    """How long a transaction waits for a lock."""

    lock_timeout: str


# Of a transaction whose session has other transactions of other clients.
SET_LOCK_TIMEOUT = Statement(__file__, "set_lock_timeout", LockTimeout)
SET_DEFAULT = SQL("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value}")


def set_defaults(session: psycopg.Connection, values: Mapping[str, str]) -> None:
    """Has each session that the server begins for this role in this database from now on begin with these settings."""
    place = {"role": Identifier(session.info.user), "database": Identifier(session.info.dbname)}
    for name, value in values.items():
        session.execute(SET_DEFAULT.format(name=Identifier(name), value=Literal(value), **place))
