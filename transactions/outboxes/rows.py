"""The rows that statements in a source return, and what is read of them."""

from datetime import datetime
from typing import NamedTuple


class Listed(NamedTuple):
    """An outbox that is drained."""

    id: int
    name: str
    url: str
    schema: str
    topics: list[str]


class Entered(NamedTuple):
    """How much was set for a transaction."""

    settings: int


class Described(NamedTuple):
    """Whether the producers of a source notify."""

    notifies: bool


class Turn(NamedTuple):
    """The first row that waits, if one does; whether producers notify, and whether this transaction has the turn."""

    asleep: bool
    slot: int | None
    seq: int | None
    is_mine: bool

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self.seq is None and self.asleep


class Holder(NamedTuple):
    """The session that has the turn."""

    pid: int
    role: str


class Measured(NamedTuple):
    """A row that waits, and how many bytes each of its fields has."""

    slot: int
    seq: int
    topic: int
    body: int
    tags: int
    keys: int
    sharding_key: int
    properties: int
    traceparent: int

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(self[2:])

    @property
    def largest(self) -> tuple[int, str]:
        """The bytes and the name of the largest."""
        return max(zip(self[2:], self._fields[2:], strict=True))


class Row(NamedTuple):
    """A row of an outbox, its fields as text. `seq` is the order in which rows of one sharding key were committed."""

    slot: int
    seq: int
    id: str | None
    topic: str | None
    body: str | None
    body_bytes: bytes | None
    tags: str | None
    keys: str | None
    sharding_key: str | None
    properties: str | None
    delay_level: str | None
    delay_seconds: str | None
    deliver_at: str | None
    traceparent: str | None
    created_at: str | None


class Refused(NamedTuple):
    """A row that no message can be made of, and why."""

    slot: int
    seq: int
    reason: str


class Waits(NamedTuple):
    """How many rows wait, and since when the first does."""

    waiting: int
    oldest_at: datetime | None


class Slot(NamedTuple):
    """A partition of the outbox."""

    slot: int


class Cleared(NamedTuple):
    """Whether a partition's disk was given back."""

    is_cleared: bool
