"""SQLAlchemy 2: messages that belong to a session's transaction, sync and async."""

from mqbroker_client.contrib.sqlalchemy.barrier import EngineBarrier
from mqbroker_client.contrib.sqlalchemy.inbox import create_inbox, exactly_once, exactly_once_async, purge_inbox
from mqbroker_client.contrib.sqlalchemy.outbox import Outbox

__all__ = ["EngineBarrier", "Outbox", "create_inbox", "exactly_once", "exactly_once_async", "purge_inbox"]
