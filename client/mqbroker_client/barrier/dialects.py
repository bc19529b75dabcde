"""The barrier's statements as PostgreSQL, MySQL with MariaDB, and SQLite understand them.

Parameters are written `:name`; a session turns them into its driver's style.
"""

from dataclasses import dataclass, replace
from typing import Self

#: How long one statement of a check may wait for a lock.
LOCK_WAIT_SECONDS = 0.5
# Where it is not to wait. Zero would be no limit in PostgreSQL; a lock of the server's own is held for less.
_NO_WAIT_MILLISECONDS = 10
KEPT_DAYS = 14
PURGE_ROWS = 1_000

_INSERT = (
    "INSERT INTO mqbroker_barrier (transaction_id, producer_group, decision, decided_at, messages) "
    "VALUES (:transaction_id, :producer_group, '{decision}', {now}, {messages})"
)
# Rows with messages wait until these are sent.
_PURGE = "decided_at < {limit} AND messages IS NULL ORDER BY decided_at LIMIT {rows}"
_PURGE_BY_ID = (
    "DELETE FROM mqbroker_barrier WHERE transaction_id IN (SELECT transaction_id FROM mqbroker_barrier WHERE {chosen})"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of database. `begin` and `commit` go around each statement of a session that autocommits.

    `begin` and `insert_rollback` have places for the time to wait for a lock, which `waiting` fills.
    """

    name: str
    #: What makes the table and its indexes, unless they are there.
    create: tuple[str, ...]
    #: The index by which rows with messages are found, which Django has no words for.
    index_kept: str
    #: In the local transaction. A row that is there makes it fail.
    insert_commit: str
    #: In a check. A row that is there stays; MySQL reports it as an error.
    insert_rollback: str
    purge: str
    #: When a row was decided, in UTC; as text where what a driver reads depends on the settings of the session.
    decided_at: str = "decided_at"
    #: Once in each session of the barrier's own.
    prepare: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    commit: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()

    def waiting(self, seconds: float) -> Self:
        """With statements that wait so long for a lock at most; 0: not at all, where the database can do that."""
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
# Rows with messages are few, and are looked for every few seconds.
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
    # In a transaction, because a pooler between may hand a session's setting to another program.
    begin=("BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL lock_timeout = {milliseconds}"),
    commit=("COMMIT",),
    rollback=("ROLLBACK",),
)

# A replica lets some users write although it is read-only: those with READ_ONLY ADMIN. Its row would be one that the
# primary server never had, so the statement itself asks. Newer servers have words in place of a number.
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
    # Never INSERT IGNORE: it turns other errors into a success. The text in /*M! … */ is read by MariaDB alone.
    insert_rollback="/*M! SET STATEMENT max_statement_time = {statement_seconds}, "
    "innodb_lock_wait_timeout = {lock_seconds} FOR */ " + _INSERT_ROLLBACK_MYSQL,
    purge="DELETE FROM mqbroker_barrier WHERE "
    + _PURGE.format(limit=f"UTC_TIMESTAMP(6) - INTERVAL {KEPT_DAYS} DAY", rows=PURGE_ROWS),
    # MySQL has no shorter one than a second.
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
    """By the name that Django's `vendor` and SQLAlchemy's `dialect.name` use."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(f"the barrier has no statements for {name}: it knows {', '.join(DIALECTS)}") from None


def create_statements(database: str) -> tuple[str, ...]:
    """What makes `mqbroker_barrier`, unless it is there, in a migration: `postgresql`, `mysql`, `mariadb` or `sqlite`.

    Raises ValueError for another kind of database.
    """
    return dialect_of(database).create
