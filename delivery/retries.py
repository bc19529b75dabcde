"""Retry policies: how long a message that was not acked waits before it comes again."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from store.errors import MessageIllegal

MAX_DELAYS = 64
MAX_DELAY_SECONDS = 40 * 86400

Seconds = Annotated[float, Meta(ge=0, le=MAX_DELAY_SECONDS)]


class Table(msgspec.Struct, tag_field="kind", tag="table", forbid_unknown_fields=True, omit_defaults=True):
    """RocketMQ's way: the delay of each retry is read from a table, the last one for all that follow.

    Without `delay_seconds` the table is that of the delay levels from the third on: 10 s, 30 s, 1 m, 2 m, ….
    """

    delay_seconds: Annotated[list[Seconds], Meta(min_length=1, max_length=MAX_DELAYS)] | None = None


class Exponential(msgspec.Struct, tag_field="kind", tag="exponential", forbid_unknown_fields=True):
    """Each retry waits `multiplier` times as long as the one before. The defaults are RocketMQ's ExponentialRetryPolicy."""

    initial_seconds: Seconds = 5.0
    max_seconds: Seconds = 7200.0
    multiplier: Annotated[float, Meta(ge=1, le=100)] = 2.0


class Never(msgspec.Struct, tag_field="kind", tag="none", forbid_unknown_fields=True):
    """No retry: a message that was not acked is a dead letter at once."""


Policy = Table | Exponential | Never


def parse(given: Any) -> dict[str, Any]:
    """A policy as it is kept, with every default filled in.

    Raises MessageIllegal naming the field and what would be right.
    """
    try:
        policy = msgspec.convert(given, Policy)  # type: ignore[arg-type]  # a union is a shape too
    except msgspec.ValidationError as problem:
        raise MessageIllegal(
            f"retry_policy cannot be used: {problem}. Its kind is table (delay_seconds?), "
            "exponential (initial_seconds?, max_seconds?, multiplier?) or none."
        ) from problem
    kept: dict[str, Any] = msgspec.to_builtins(policy)
    return kept
