"""The broker's refusals: one class for each stable code, one sentence for each refusal.

These classes know nothing of HTTP; `mqbroker.errors` turns a refusal into a problem document.
"""

from typing import ClassVar


class Refusal(Exception):
    """A request that the broker refuses. `detail` names the thing, its state and the way out.

    `is_for_now`: the request is valid and may succeed later. Work that the broker does by itself (rows of outboxes,
    firings, pushes, redrives, actions) is repeated after such a refusal; it is not set apart, dropped or counted as an
    attempt.
    """

    code: ClassVar[str] = "bad_request"
    is_for_now: ClassVar[bool] = False

    def __init__(self, detail: str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class BadRequest(Refusal):
    """The request is not well-formed JSON of the right shape."""


class MessageIllegal(Refusal):
    """A field of the message or of the request breaks a rule."""

    code = "message_illegal"


def require_between(name: str, value: float, least: float, most: float) -> None:
    """Raises MessageIllegal unless a field of a request is between two limits, both included."""
    if not least <= value <= most:
        raise MessageIllegal(f"{name} {value} is not between {least} and {most}.")


class MessageTooLarge(Refusal):
    """The body is above MAX_MESSAGE_BYTES."""

    code = "message_too_large"


class PropertiesTooLarge(Refusal):
    """Properties, tags and keys are too many or too long."""

    code = "properties_too_large"


class KeyTooLong(PropertiesTooLarge):
    """A key is too long for the index of keys, the only index over long texts that producers choose."""

    def __init__(self) -> None:
        super().__init__(
            "keys holds one that is too long for its index, nothing was stored: 2,600 bytes are always possible, and "
            "more where PostgreSQL can compress them."
        )


class TopicIllegal(Refusal):
    """The name is not valid for a topic."""

    code = "topic_illegal"


class TopicForbidden(Refusal):
    """The topic is the broker's own, or its permission does not allow this."""

    code = "topic_forbidden"


class TopicClosed(TopicForbidden):
    """The topic's permission does not allow this now: an operator opens it again."""

    is_for_now = True


class TopicNotExist(Refusal):
    """There is no topic with this name."""

    code = "topic_not_exist"


class TransactionSpansCells(Refusal):
    """The topics of one transaction, or of an ack with messages, lie in several cells."""

    code = "transaction_spans_cells"


class GroupNotExist(Refusal):
    """There is no group with this name."""

    code = "group_not_exist"


class QueueIllegal(Refusal):
    """The topic has no such queue."""

    code = "queue_illegal"


class DelayIllegal(Refusal):
    """The delay is above the maximum, or given in two ways."""

    code = "delay_illegal"


class BatchIllegal(Refusal):
    """The messages cannot be sent as one batch."""

    code = "batch_illegal"


class FilterIllegal(Refusal):
    """The filter cannot be parsed."""

    code = "filter_illegal"


class MessageIdReused(Refusal):
    """The id was used for another message."""

    code = "message_id_reused"


class MessageNotFound(Refusal):
    """There is no stored message with this id."""

    code = "message_not_found"


class OffsetOutOfRange(Refusal):
    """The queue has no entry at this offset."""

    code = "offset_out_of_range"


class RateLimited(Refusal):
    """The caller, or its producer group, has used up its limit; nothing was stored."""

    code = "rate_limited"
    is_for_now = True

    def __init__(self, detail: str, *, retry_after_seconds: int = 1) -> None:
        # The document contains the seconds, too, because a result within a bulk has no header Retry-After.
        super().__init__(detail, retry_after_seconds=retry_after_seconds)
        self.retry_after_seconds = retry_after_seconds


class SendsForbidden(Refusal):
    """The topic takes no messages before a time that an operator has set; nothing was stored."""

    code = "sends_forbidden"
    is_for_now = True

    def __init__(self, detail: str, *, retry_after_seconds: int) -> None:
        super().__init__(detail, retry_after_seconds=retry_after_seconds)
        self.retry_after_seconds = retry_after_seconds


class SystemBusy(Refusal):
    """Too many requests wait, or the database is away. Nothing was stored."""

    code = "system_busy"
    is_for_now = True


class CellAway(SystemBusy):
    """The database of one cell is away. Topics of other cells are not affected."""

    code = "cell_away"


class TopicMoved(SystemBusy):
    """A topic has left the cell to which this process sent the message; nothing was stored there."""

    code = "topic_moved"


class OutcomeUnknown(Refusal):
    """The connection broke during the commit, so it is unknown whether the write was stored. Repeating is safe."""

    code = "outcome_unknown"
    is_for_now = True


class NoPermission(Refusal):
    """The API key does not have the scope that the call needs."""

    code = "no_permission"


class Unauthenticated(Refusal):
    """The request has no API key, or an unknown one."""

    code = "unauthenticated"
