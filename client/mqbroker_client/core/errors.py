"""Errors between a program and the broker: one class for each kind of answer."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self


class BrokerError(Exception):
    """The broker did not do what the request asked. Nothing was stored, unless the subclass says otherwise."""

    #: The broker's error code for which this class stands; empty for a class with subclasses.
    code_of_class: ClassVar[str] = ""
    status_of_class: ClassVar[int] = 0

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
        problem: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(f"{code} ({status}): {detail}" if status else f"{code}: {detail}")
        self.detail = detail
        #: The HTTP status; 0 without an answer. An error that the client raises before sending has the status that the
        #: broker would answer.
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        #: The whole problem document, including members that only some errors have.
        self.problem = dict(problem or {})

    def anew(self) -> Self:
        """A copy of the error for another caller, because an exception object can have only one traceback."""
        names = ("status", "code", "request_id", "retry_after_seconds", "problem")
        return type(self)(self.detail, **{name: getattr(self, name) for name in names})


class Unreachable(BrokerError):
    """No answer came in time. The request may have been done; repeat it with the same ids."""


class AnswerOfAnotherRequest(Unreachable):
    """The answer has the id of another request. The answer and its connection are not used."""


class AnswerNotUnderstood(BrokerError):
    """The answer does not follow the broker's API; another program may have answered."""


class BadRequest(BrokerError):
    status_of_class = 400


class TransactionSpansCells(BadRequest):
    code_of_class = "transaction_spans_cells"


class Unauthenticated(BrokerError):
    status_of_class = 401


class Forbidden(BrokerError):
    status_of_class = 403


class NoPermission(Forbidden):
    code_of_class = "no_permission"


class TopicForbidden(Forbidden):
    code_of_class = "topic_forbidden"


class TransactionsRejected(Forbidden):
    code_of_class = "transactions_rejected"


class NotFound(BrokerError):
    status_of_class = 404


class TopicNotExist(NotFound):
    code_of_class = "topic_not_exist"


class TransactionNotFound(NotFound):
    code_of_class = "transaction_not_found"


class MessageNotFound(NotFound):
    code_of_class = "message_not_found"


class GroupNotExist(NotFound):
    code_of_class = "group_not_exist"


class Conflict(BrokerError):
    status_of_class = 409


class ProducerGroupWrong(Conflict):
    code_of_class = "producer_group_wrong"


class CommitLogOffsetWrong(Conflict):
    code_of_class = "commit_log_offset_wrong"


class TransactionEnded(Conflict):
    """The transaction was already ended with the opposite decision."""

    code_of_class = "transaction_ended"


class TransactionDiscarded(Conflict):
    code_of_class = "transaction_discarded"


class AlreadyDelivered(Conflict):
    code_of_class = "already_delivered"


class MessageIdReused(Conflict):
    """The message id was already used for another message."""

    code_of_class = "message_id_reused"


class ReceiptExpired(BrokerError):
    status_of_class = 410
    code_of_class = "receipt_expired"


class MessageTooLarge(BrokerError):
    status_of_class = 413
    code_of_class = "message_too_large"


class OffsetOutOfRange(BrokerError):
    """The offset is not between the queue's bounds, which are `problem["min_offset"]` and `problem["max_offset"]`."""

    status_of_class = 416
    code_of_class = "offset_out_of_range"


class Refused(BrokerError):
    """The request had the right form but broke a rule."""

    status_of_class = 422


class MessageIllegal(Refused):
    code_of_class = "message_illegal"


class PropertiesTooLarge(Refused):
    code_of_class = "properties_too_large"


class TopicIllegal(Refused):
    code_of_class = "topic_illegal"


class BatchIllegal(Refused):
    code_of_class = "batch_illegal"


class DelayIllegal(Refused):
    code_of_class = "delay_illegal"


class FilterIllegal(Refused):
    code_of_class = "filter_illegal"


class QueueIllegal(Refused):
    code_of_class = "queue_illegal"


class RateLimited(BrokerError):
    """The caller exceeds a limit of the broker; `retry_after_seconds` is the time to wait."""

    status_of_class = 429
    code_of_class = "rate_limited"


class InternalError(BrokerError):
    """The broker failed; its log has the details by the request id. The request may have been done."""

    status_of_class = 500


class Unavailable(BrokerError):
    """The broker, or a gateway in front of it, cannot answer at the moment."""

    status_of_class = 503


class SystemBusy(Unavailable):
    code_of_class = "system_busy"


class CellAway(SystemBusy):
    code_of_class = "cell_away"


class TopicMoved(SystemBusy):
    code_of_class = "topic_moved"


class SendsForbidden(Unavailable):
    code_of_class = "sends_forbidden"


class OutcomeUnknown(Unavailable):
    """The write may or may not have been stored; repeating the same request with the same ids is safe."""

    code_of_class = "outcome_unknown"


def from_problem(
    status: int, problem: Mapping[str, object], request_id: str | None, retry_after_seconds: float | None
) -> BrokerError:
    """The error for an answer that is not 2xx: chosen by its code, else by its status, else the base class."""
    code = str(problem.get("code") or f"http_{status}")
    why = str(problem.get("detail") or problem.get("title") or "no reason was given")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, BrokerError)
    return kind(
        why, status=status, code=code, request_id=request_id, retry_after_seconds=retry_after_seconds, problem=problem
    )


def _below(kind: type[BrokerError]) -> Iterator[type[BrokerError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


_BY_CODE = {kind.code_of_class: kind for kind in _below(BrokerError) if kind.code_of_class}
# `__dict__`, so that only classes that define a status themselves count, not subclasses that inherit it.
_BY_STATUS = {kind.status_of_class: kind for kind in _below(BrokerError) if "status_of_class" in kind.__dict__} | {
    502: Unavailable,
    504: Unavailable,
}
