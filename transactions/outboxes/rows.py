"""The types of rows that statements about outboxes return."""

from typing import NamedTuple


class Listed(NamedTuple):
    """An outbox that the web processes drain."""

    id: int
    name: str
    url: str
    schema: str
    topics: list[str]


class Described(NamedTuple):
    """Whether the producers of a source send notices, and whether no pooler is between."""

    notifies: bool
    is_direct: bool


class Turn(NamedTuple):
    """The first waiting row, if any; whether producers send notices, and whether this transaction has the turn."""

    asleep: bool
    slot: int | None
    seq: int | None
    is_mine: bool

    @property
    def is_idle(self) -> bool:
        """Whether no row waits and there is nothing else to do."""
        return self.seq is None and self.asleep


class Measured(NamedTuple):
    """A waiting row, and the bytes of each of its fields."""

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
        """The bytes of all fields."""
        return sum(self[2:])

    @property
    def largest(self) -> tuple[int, str]:
        """The bytes and the name of the largest field."""
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


class Small(NamedTuple):
    """The first waiting row, as in `Turn`, the number of rows that wait, and the fields of a row that was taken."""

    asleep: bool
    first_slot: int | None
    first_seq: int | None
    is_mine: bool
    waiting: int
    slot: int | None
    seq: int | None
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

    @property
    def turn(self) -> Turn:
        """The first waiting row, and whether this transaction has the turn."""
        return Turn(self.asleep, self.first_slot, self.first_seq, self.is_mine)

    @property
    def row(self) -> Row:
        """The row that was taken. Its fields come after the fields of the turn."""
        return Row._make(self[-len(Row._fields) :])


class Refused(NamedTuple):
    """A row that cannot become a message, and the reason."""

    slot: int
    seq: int
    reason: str


class Waits(NamedTuple):
    """The number of waiting rows, how long the oldest waits, and whether the table is of an earlier docs/sql.md."""

    waiting: int
    waited_seconds: float | None
    is_outdated: bool
