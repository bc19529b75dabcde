"""SQLAlchemy 2: messages that belong to a session's transaction, sync and async."""

from mqbroker_client.sqlalchemy.outbox import Outbox

__all__ = ["Outbox"]
