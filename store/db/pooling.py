"""A pooler between the broker and PostgreSQL: which sessions go through it, and how their settings are set.

A pooler does not pass on the settings of a session. With transaction pooling, locks, notices and prepared statements of
a session are shared by clients. So the settings of the broker's sessions are defaults of the role in the database, set
by `manage.py prepare`. A connection that needs its own session goes past the pooler, to DIRECT_DATABASE_URL.
"""

from collections.abc import Mapping

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from store.db.statements import Statement

NONE, SESSION, TRANSACTION = WAYS = ("none", "session", "transaction")


# The statement that sets a setting for one transaction only, because other clients share the session.
SET_LOCK_TIMEOUT = Statement(__file__, "set_lock_timeout", one=str)
SET_DEFAULT = SQL("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value}")


def set_defaults(session: psycopg.Connection, values: Mapping[str, str]) -> None:
    """Makes these settings the defaults of new sessions of this role in this database."""
    place = {"role": Identifier(session.info.user), "database": Identifier(session.info.dbname)}
    for name, value in values.items():
        session.execute(SET_DEFAULT.format(name=Identifier(name), value=Literal(value), **place))
