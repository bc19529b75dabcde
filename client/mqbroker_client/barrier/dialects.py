"""The barrier's statements for PostgreSQL, MySQL and MariaDB, and SQLite.

Parameters are written `:name`; a session turns them into its driver's style.
"""

from dataclasses import dataclass, replace
from typing import Self

#: How long one statement of a check may wait for a lock.
LOCK_WAIT_SECONDS = 0.5
# In place of no wait, because 0 means no limit in PostgreSQL. The server's internal locks are held for less time.
_NO_WAIT_MILLISECONDS = 10
KEPT_DAYS = 14
PURGE_ROWS = 1_000

_INSERT = (
    "INSERT INTO mqbroker_barrier (transaction_id, producer_group, decision, decided_at, messages) "
    "VALUES (:transaction_id, :producer_group, '{decision}', {now}, {messages})"
)
# Rows with messages are kept until the messages are sent.
_PURGE = "decided_at < {limit} AND messages IS NULL ORDER BY decided_at LIMIT {rows}"
_PURGE_BY_ID = (
    "DELETE FROM mqbroker_barrier WHERE transaction_id IN (SELECT transaction_id FROM mqbroker_barrier WHERE {chosen})"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The statements of one kind of database. `begin` and `commit` surround each statement of a session of the barrier.

    `begin` and `insert_rollback` contain a placeholder for the wait for a lock, which `waiting` fills.
    """

    name: str
    #: The statements that create the table and its indexes if they do not exist.
    create: tuple[str, ...]
    #: The partial index for rows with messages, which Django cannot express on every database.
    index_kept: str
    #: The insert in the local transaction. It fails if the row exists.
    insert_commit: str
    #: The insert of a check. An existing row stays; MySQL reports it as an error.
    insert_rollback: str
    purge: str
    #: When a row was decided, in UTC; as text for databases whose drivers read times by the session's settings.
    decided_at: str = "decided_at"
    #: Statements that each session of the barrier executes once, when it begins.
    prepare: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    commit: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()

    def waiting(self, seconds: float) -> Self:
        """A copy of the dialect whose statements wait at most `seconds` for a lock. 0: they do not wait, if the
        database supports this.
        """
        places = {
            "milliseconds": max(round(seconds * 1_000), _NO_WAIT_MILLISECONDS),
            "statement_seconds": seconds or LOCK_WAIT_SECONDS,
            "lock_seconds": 1 if seconds else 0,
        }
        begin = tuple(statement.format(**places) for statement in self.begin)
        return replace(self, begin=begin, insert_rollback=self.insert_rollback.format(**places))


def _insert_commit(now: str) -> str:
    return _INSERT.format(decision="COMMIT", now=now, messages=":messages")


def _insert_rollback(now: str) -> str:
    return _INSERT.format(decision="ROLLBACK", now=now, messages="NULL")


def _create(text: str, moment: str, more: str = ")") -> str:
    return (
        "CREATE TABLE IF NOT EXISTS mqbroker_barrier ("
        "transaction_id varchar(36) NOT NULL PRIMARY KEY, "
        "producer_group varchar(255) NOT NULL, "
        "decision varchar(8) NOT NULL CHECK (decision IN ('COMMIT', 'ROLLBACK')), "
        f"decided_at {moment} NOT NULL, "
        f"messages {text}, "
        f"refused {text}{more}"
    )


_INDEX_DECIDED = "CREATE INDEX IF NOT EXISTS mqbroker_barrier_decided ON mqbroker_barrier (decided_at)"
# An index for rows with messages: they are few, and searched every few seconds.
_INDEX_KEPT = (
    "CREATE INDEX IF NOT EXISTS mqbroker_barrier_kept ON mqbroker_barrier (transaction_id) WHERE messages IS NOT NULL"
)
_INDEX_KEPT_MYSQL = "CREATE INDEX mqbroker_barrier_kept ON mqbroker_barrier (messages(1))"
# MySQL has no CREATE INDEX IF NOT EXISTS.
_MORE_MYSQL = ", INDEX mqbroker_barrier_decided (decided_at), INDEX mqbroker_barrier_kept (messages(1))) ENGINE=InnoDB"

POSTGRESQL = Dialect(
    name="postgresql",
    create=(_create("text", "timestamp with time zone"), _INDEX_DECIDED, _INDEX_KEPT),
    index_kept=_INDEX_KEPT,
    insert_commit=_insert_commit("now()"),
    insert_rollback=_insert_rollback("now()") + " ON CONFLICT DO NOTHING",
    purge=_PURGE_BY_ID.format(
        chosen=_PURGE.format(limit=f"now() - interval '{KEPT_DAYS} days'", rows=PURGE_ROWS) + " FOR UPDATE SKIP LOCKED"
    ),
    decided_at="to_char(decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
    # The setting is made in a transaction, because a pooler may give a session's setting to another program.
    begin=("BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL lock_timeout = {milliseconds}"),
    commit=("COMMIT",),
    rollback=("ROLLBACK",),
)

# Although a replica is read-only, it accepts writes of users with READ_ONLY ADMIN. A row written there would never
# exist on the primary, so the statement itself checks whether the server is read-only. Newer servers return words
# instead of a number.
_INSERT_ROLLBACK_MYSQL = (
    "INSERT INTO mqbroker_barrier (transaction_id, producer_group, decision, decided_at, messages) "
    "SELECT :transaction_id, :producer_group, 'ROLLBACK', UTC_TIMESTAMP(6), NULL FROM DUAL "
    "WHERE CAST(@@global.read_only AS CHAR) IN ('0', 'OFF')"
)

MYSQL = Dialect(
    name="mysql",
    create=(_create("longtext", "datetime(6)", _MORE_MYSQL),),
    index_kept=_INDEX_KEPT_MYSQL,
    insert_commit=_insert_commit("UTC_TIMESTAMP(6)"),
    # Never INSERT IGNORE, which hides other errors. Only MariaDB reads the text in /*M! … */.
    insert_rollback="/*M! SET STATEMENT max_statement_time = {statement_seconds}, "
    "innodb_lock_wait_timeout = {lock_seconds} FOR */ " + _INSERT_ROLLBACK_MYSQL,
    purge="DELETE FROM mqbroker_barrier WHERE "
    + _PURGE.format(limit=f"UTC_TIMESTAMP(6) - INTERVAL {KEPT_DAYS} DAY", rows=PURGE_ROWS),
    # MySQL's shortest lock time-out is one second.
    prepare=(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION innodb_lock_wait_timeout = 1",
        "SET SESSION lock_wait_timeout = 1",
    ),
)

SQLITE = Dialect(
    name="sqlite",
    create=(_create("text", "datetime"), _INDEX_DECIDED, _INDEX_KEPT),
    index_kept=_INDEX_KEPT,
    insert_commit=_insert_commit("strftime('%Y-%m-%d %H:%M:%f', 'now')"),
    insert_rollback=_insert_rollback("strftime('%Y-%m-%d %H:%M:%f', 'now')") + " ON CONFLICT DO NOTHING",
    purge=_PURGE_BY_ID.format(
        chosen=_PURGE.format(limit=f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{KEPT_DAYS} days')", rows=PURGE_ROWS)
    ),
    begin=("PRAGMA busy_timeout = {milliseconds}",),
)

DIALECTS = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL, "sqlite": SQLITE}


def dialect_of(name: str) -> Dialect:
    """The dialect by its name in Django (`connection.vendor`) or SQLAlchemy (`dialect.name`)."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(f"the barrier has no statements for {name}: it knows {', '.join(DIALECTS)}") from None


def create_statements(database: str) -> tuple[str, ...]:
    """A migration's statements that create `mqbroker_barrier`: for `postgresql`, `mysql`, `mariadb` or `sqlite`.

    Raises ValueError for another kind of database.
    """
    return dialect_of(database).create
