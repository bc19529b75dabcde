"""What the look-up of messages answers, for the schema only."""

import msgspec

from store.messages import StoredMessage


class FoundMessage(msgspec.Struct):
    """A message that was looked up. `queue_offset` is null while it is not visible: undecided, delayed, or never."""

    message: StoredMessage
    queue_id: int
    queue_offset: int | None


class FoundMessages(msgspec.Struct):
    """A page of messages, the newest first; `next` is the cursor of the next one, null on the last.

    It may hold fewer than were asked for, even none, although there are more.
    """

    results: list[FoundMessage]
    next: str | None
