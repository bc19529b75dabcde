"""The rows of the inbox: one for each message that a consumer group has handled in this database."""

from dataclasses import dataclass
from uuid import UUID

from mqbroker_client.barrier.dialects import KEPT_DAYS, PURGE_ROWS
from mqbroker_client.barrier.sessions import Session

_INSERT = (
    "INSERT INTO mqbroker_inbox (consumer_group, message_id, handled_at) VALUES (:consumer_group, :message_id, {now})"
)
_FIND = "SELECT 1 FROM mqbroker_inbox WHERE consumer_group = :consumer_group AND message_id = :message_id"
_CREATE = (
    "CREATE TABLE IF NOT EXISTS mqbroker_inbox (consumer_group varchar(255) NOT NULL, message_id varchar(36) NOT NULL, "
    "handled_at {moment} NOT NULL, PRIMARY KEY (consumer_group, message_id){more}"
)
_INDEX = "CREATE INDEX IF NOT EXISTS mqbroker_inbox_handled ON mqbroker_inbox (handled_at)"
# MySQL has no CREATE INDEX IF NOT EXISTS.
_MORE_MYSQL = ", INDEX mqbroker_inbox_handled (handled_at)) ENGINE=InnoDB"
_PURGE = (
    "DELETE FROM mqbroker_inbox WHERE (consumer_group, message_id) IN ("
    "SELECT consumer_group, message_id FROM mqbroker_inbox WHERE handled_at < {limit} ORDER BY handled_at "
    f"LIMIT {PURGE_ROWS})"
)
_PURGE_MYSQL = f"DELETE FROM mqbroker_inbox WHERE handled_at < {{limit}} ORDER BY handled_at LIMIT {PURGE_ROWS}"


@dataclass(frozen=True, slots=True)
class Statements:
    """The inbox's statements for one kind of database."""

    create: tuple[str, ...]
    insert: str
    purge: str
    #: Whether the insert of an existing row fails, instead of having no effect.
    insert_fails: bool = False


_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now'{})"
_UNLESS_THERE = " ON CONFLICT DO NOTHING"
STATEMENTS = {
    "postgresql": Statements(
        (_CREATE.format(moment="timestamp with time zone", more=")"), _INDEX),
        # The insert waits for another transaction that handles the same message now.
        _INSERT.format(now="now()") + _UNLESS_THERE,
        _PURGE.format(limit=f"now() - interval '{KEPT_DAYS} days'"),
    ),
    "mysql": Statements(
        (_CREATE.format(moment="datetime(6)", more=_MORE_MYSQL),),
        # Never INSERT IGNORE, which hides other errors.
        _INSERT.format(now="UTC_TIMESTAMP(6)"),
        _PURGE_MYSQL.format(limit=f"UTC_TIMESTAMP(6) - INTERVAL {KEPT_DAYS} DAY"),
        insert_fails=True,
    ),
    "sqlite": Statements(
        (_CREATE.format(moment="datetime", more=")"), _INDEX),
        _INSERT.format(now=_SQLITE_NOW.format("")) + _UNLESS_THERE,
        _PURGE.format(limit=_SQLITE_NOW.format(f", '-{KEPT_DAYS} days'")),
    ),
}


def create(session: Session) -> None:
    """Creates the table if it does not exist."""
    for statement in STATEMENTS[session.dialect.name].create:
        session.write(statement, {})


def claim(session: Session, group: str, message_id: UUID) -> bool:
    """Notes in the open transaction that the group handles this message; False when it was handled before.

    It waits while another transaction handles the same message.
    """
    statements = STATEMENTS[session.dialect.name]
    row = {"consumer_group": group, "message_id": str(message_id)}
    try:
        return session.write(statements.insert, row) == 1
    except Exception:
        # Drivers of MySQL have no common error class for an existing row, so the row is looked up.
        if statements.insert_fails and session.query(_FIND, row):
            return False
        raise


def purge(session: Session) -> int:
    """Deletes at most 1,000 rows older than 14 days. Returns their number."""
    return session.write(STATEMENTS[session.dialect.name].purge, {})
