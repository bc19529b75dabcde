"""The row of the commit log that a record becomes, for readers in this process that need not read the row back."""

from datetime import UTC, datetime

from msgspec.structs import asdict

from store.messages.fields import MessageRow, Record


def row_of(record: Record, segment_id: int, log_offset: int, stored_at: datetime) -> MessageRow:
    """The row as PostgreSQL returns it in a session with the time zone UTC."""
    given = {
        "segment_id": segment_id,
        "log_offset": log_offset,
        "stored_at": stored_at,
        "born_at": None if record.born_at is None else record.born_at.astimezone(UTC),
        "keys": record.keys.split(" ") if record.keys else None,
    }
    return MessageRow(**{**asdict(record), **given})
