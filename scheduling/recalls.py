"""Recall handles: what names a delayed message to whoever wants it back."""

import base64

import msgspec

from scheduling.publish import Publication


class Handle(msgspec.Struct, array_like=True, frozen=True):
    """Where a delayed message waits: a timer by its id, or an offset of a level's queue."""

    message_id: str
    timer_id: str | None = None
    level_queue: int | None = None
    level_offset: int | None = None


def handle_of(publication: Publication) -> str:
    """The handle of a delayed message; opaque to clients."""
    entry = publication.entry
    handle = Handle(
        message_id=str(publication.message_id),
        timer_id=str(publication.timer_id) if publication.timer_id else None,
        level_queue=entry.queue_id if entry else None,
        level_offset=entry.queue_offset if entry else None,
    )
    return base64.urlsafe_b64encode(msgspec.json.encode(handle)).decode().rstrip("=")
