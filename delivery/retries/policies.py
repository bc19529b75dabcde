"""Retry policies: how long a message that was not acked waits before it is offered again."""

from typing import Annotated

import msgspec
from msgspec import Meta

from scheduling.delays import Delay
from store.errors import MessageIllegal, wrong_fields

FIRST_RETRY_LEVEL = 3
MAX_DELAYS = 64
MAX_DELAY_SECONDS = 40 * 86400
# The largest exponent: 100 ** 64 is far below the largest float.
MAX_EXPONENT = 64
# Delay of an ordered group with the default policy: it is short because the queue or key waits behind the message.
# RocketMQ's suspendCurrentQueueTimeMillis.
ORDERED_SECONDS = 1.0

Seconds = Annotated[float, Meta(ge=0, le=MAX_DELAY_SECONDS)]


class Table(msgspec.Struct, tag_field="kind", tag="table", forbid_unknown_fields=True, omit_defaults=True):
    """A table with the delay of each retry, as in RocketMQ. The last delay also applies to all later retries.

    Without `delay_seconds` the table has the delay levels from the third on: 10 s, 30 s, 1 m, 2 m, ….
    """

    delay_seconds: Annotated[list[Seconds], Meta(min_length=1, max_length=MAX_DELAYS)] | None = None


class Exponential(msgspec.Struct, tag_field="kind", tag="exponential", forbid_unknown_fields=True):
    """Each retry waits `multiplier` times as long as the one before. The defaults are RocketMQ's."""

    initial_seconds: Seconds = 5.0
    max_seconds: Seconds = 7200.0
    multiplier: Annotated[float, Meta(ge=1, le=100)] = 2.0


class Never(msgspec.Struct, tag_field="kind", tag="none", forbid_unknown_fields=True):
    """No retry: a message that was not acked is a dead letter at once."""


Policy = Table | Exponential | Never


def parse(given: object) -> dict[str, object]:
    """A policy in the form of the group's row, with all defaults filled in.

    Raises MessageIllegal, which names the field and the valid values.
    """
    try:
        policy = msgspec.convert(given, Policy)
    except msgspec.ValidationError as problem:
        raise MessageIllegal(
            f"retry_policy is not valid: {wrong_fields.sentence(problem, Policy)} Give the kind table "
            "(optional: delay_seconds), exponential (optional: initial_seconds, max_seconds, multiplier) or none."
        ) from problem
    kept: dict[str, object] = msgspec.to_builtins(policy)
    return kept


def default(*, ordered: bool) -> dict[str, object]:
    """The policy of a group for which no policy was given."""
    return parse({"kind": "table", "delay_seconds": [ORDERED_SECONDS]} if ordered else {"kind": "table"})


def delay(policy: object, retries_before: int) -> Delay | None:
    """The wait before the next retry of a message that had `retries_before`; None when the policy retries nothing.

    `policy` is the JSON of a group's row. RocketMQ's table: the first retry waits for delay level 3 (10 s), the next
    for level 4, and so on.
    """
    kind: Policy = msgspec.convert(policy or {"kind": "table"}, Policy)
    if isinstance(kind, Never):
        return None
    if isinstance(kind, Exponential):
        factor = kind.multiplier ** min(retries_before, MAX_EXPONENT)
        return Delay(seconds=min(kind.max_seconds, kind.initial_seconds * factor))
    if kind.delay_seconds is None:
        return Delay(level=FIRST_RETRY_LEVEL + retries_before)
    return Delay(seconds=kind.delay_seconds[min(retries_before, len(kind.delay_seconds) - 1)])
