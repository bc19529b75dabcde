"""The row of the commit log that a record becomes, for what need not be read back."""

from datetime import UTC, datetime

from msgspec.structs import asdict

from store.messages.fields import MessageRow, Record


def row_of(record: Record, segment_id: int, log_offset: int, stored_at: datetime) -> MessageRow:
    """As PostgreSQL gives it in a session whose time zone is UTC."""
    given = {
        "segment_id": segment_id,
        "log_offset": log_offset,
        "stored_at": stored_at,
        "born_at": None if record.born_at is None else record.born_at.astimezone(UTC),
        "keys": record.keys.split(" ") if record.keys else None,
    }
    return MessageRow(**{**asdict(record), **given})
