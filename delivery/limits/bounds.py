"""Bounds: how many messages of a value a group may have in flight, and how many it may be handed per second.

The rate of a value is a token bucket. The state of the bucket is one time, at which the bucket is full again (the
generic cell rate algorithm); `due_seconds` is the time from now until then. A full bucket has no row.
"""

import math
from typing import Annotated, NamedTuple, Self

import msgspec
from msgspec import Meta

from delivery.limits import keys
from store.errors import MessageIllegal, wrong_fields

# A receive counts the deliveries in flight of each value that it looks at, up to the limit, in about 0.2 µs each.
MAX_IN_FLIGHT = 10_000
MAX_PER_SECOND = 100_000.0
MIN_PER_SECOND = 0.001
MAX_BURST = 100_000
# The longest time in which an empty bucket may become full again. The row of a value is deleted after this time without
# a message.
MAX_FILL_SECONDS = 86_400
# The most values with separate limits: each receive reads all of these limits.
MAX_VALUES = 500
# How many seconds a receive waits before it looks again at a value that is at its limit of messages in flight. An ack
# by a consumer of this process ends the wait.
SLOT_SECONDS = 0.5
# Stands for `no limit` in numbers of messages.
NO_LIMIT = 1 << 31

Value = Annotated[str, Meta(max_length=keys.MAX_KEY)]


class Room(NamedTuple):
    """How many messages of a value may be handed out now.

    If `messages` is 0, look again after `wait_seconds`.
    """

    messages: int
    wait_seconds: float


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limits of one value; None: no limit. A full bucket lets `burst` messages through at once; the default is the
    messages of one second.
    """

    in_flight: Annotated[int, Meta(ge=0, le=MAX_IN_FLIGHT)] | None = None
    per_second: Annotated[float, Meta(ge=MIN_PER_SECOND, le=MAX_PER_SECOND)] | None = None
    burst: Annotated[int, Meta(ge=1, le=MAX_BURST)] | None = None

    @property
    def size(self) -> int:
        """The number of messages that a full bucket lets through."""
        return self.burst or math.ceil(self.per_second or 1)

    @property
    def seconds(self) -> float:
        """The seconds in which the bucket regains the room of one message; 0 without a rate."""
        return 1 / self.per_second if self.per_second else 0.0

    def room(self, in_flight: int, due_seconds: float) -> Room:
        """How many messages of a value may be handed out now, if `in_flight` of its messages are in flight and its
        bucket is full in `due_seconds`.
        """
        free = NO_LIMIT if self.in_flight is None else max(self.in_flight - in_flight, 0)
        tokens = NO_LIMIT if self.per_second is None else math.floor(self.size - due_seconds * self.per_second)
        wait = 0.0 if free else SLOT_SECONDS
        if self.per_second is not None and tokens < 1:
            wait = max(wait, due_seconds - (self.size - 1) / self.per_second)
        return Room(max(min(free, tokens), 0), wait)


class Limits(Limit, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The limits of a group. They apply to each value of `by`; a value in `values` has its own limits instead.

    `by` is `sharding_key`, `property:NAME` or `group`. A message without the sharding key or the property has the value
    "". With `group` all messages have one value.
    """

    by: str
    values: Annotated[dict[Value, Limit], Meta(max_length=MAX_VALUES)] = {}

    @classmethod
    def of(cls, kept: object) -> Self:
        """The limits that the group's row contains."""
        return msgspec.convert(kept, cls)

    def limit(self, key: str) -> Limit:
        """The limits that apply to this value."""
        return self.values.get(keys.readable(key), self) if self.values else self

    @property
    def most_in_flight(self) -> int:
        """The largest limit of deliveries in flight; 0 if no value has such a limit."""
        return max(one.in_flight or 0 for one in (self, *self.values.values()))


def parse(given: object) -> dict[str, object]:
    """The limits in the form of the group's row. Raises MessageIllegal, which names the field and the valid values."""
    try:
        limits = msgspec.convert(given, Limits)
    except msgspec.ValidationError as problem:
        raise MessageIllegal(f"limits is not valid: {wrong_fields.sentence(problem, Limits)}") from problem
    if limits.by != keys.GROUP and not keys.is_source(limits.by):
        raise MessageIllegal(
            f"limits is not valid: by is {limits.by[:60]!r}: give {keys.SHARDING_KEY}, {keys.PROPERTY}NAME or "
            f"{keys.GROUP}."
        )
    if limits.by == keys.GROUP and limits.values:
        raise MessageIllegal("limits is not valid: with by = group there is only one value: leave values out.")
    for name, limit in (("", limits), *limits.values.items()):
        _require_rate(limit, f"values[{name!r}]: " if limit is not limits else "")
    kept: dict[str, object] = msgspec.to_builtins(limits)
    return kept


def _require_rate(limit: Limit, where: str) -> None:
    if limit.burst is not None and limit.per_second is None:
        raise MessageIllegal(f"limits is not valid: {where}burst needs per_second: give both, or neither.")
    if (seconds := limit.size * limit.seconds) > MAX_FILL_SECONDS:
        raise MessageIllegal(
            f"limits is not valid: {where}a burst of {limit.size} takes {seconds:.0f} s at this rate: "
            f"give at most {MAX_FILL_SECONDS} s, by a smaller burst or a higher per_second."
        )


def validate(*, ordered: object, fair_by: object, by: object) -> None:
    """Raises MessageIllegal if a group with these settings `ordered` and `fair_by` cannot have limits by `by`."""
    if ordered and by not in (keys.SHARDING_KEY, keys.GROUP):
        raise MessageIllegal(
            f"An ordered group keeps the order of each sharding key: give {keys.SHARDING_KEY} or {keys.GROUP} as by of "
            "its limits."
        )
    if fair_by is not None and by not in (fair_by, keys.GROUP):
        raise MessageIllegal(
            f"The limits of a fair group must count by the keys that take turns: give {fair_by} or {keys.GROUP} as by."
        )
