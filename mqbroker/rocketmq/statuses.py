"""The protocol's status code for each refusal."""

from mqbroker.errors import refusal_of
from mqbroker.rocketmq.protocol.definition_pb2 import Code, Status
from store.errors import Refusal

# The status code for the code of each refusal. A refusal that is missing here is answered as an internal error.
CODE_OF: dict[str, Code] = {
    "bad_request": Code.BAD_REQUEST,
    "message_illegal": Code.BAD_REQUEST,
    "queue_illegal": Code.BAD_REQUEST,
    "cell_illegal": Code.BAD_REQUEST,
    "cell_not_exist": Code.NOT_FOUND,
    "message_id_reused": Code.ILLEGAL_MESSAGE_ID,
    "offset_out_of_range": Code.ILLEGAL_OFFSET,
    "request_timeout": Code.REQUEST_TIMEOUT,
    "topic_illegal": Code.ILLEGAL_TOPIC,
    "topic_forbidden": Code.FORBIDDEN,
    "no_permission": Code.FORBIDDEN,
    "transactions_rejected": Code.FORBIDDEN,
    "topic_not_exist": Code.TOPIC_NOT_FOUND,
    "group_not_exist": Code.CONSUMER_GROUP_NOT_FOUND,
    "message_not_found": Code.NOT_FOUND,
    "not_found": Code.NOT_FOUND,
    "already_delivered": Code.NOT_FOUND,
    "message_too_large": Code.MESSAGE_BODY_TOO_LARGE,
    "properties_too_large": Code.MESSAGE_PROPERTIES_TOO_LARGE,
    "delay_illegal": Code.ILLEGAL_DELIVERY_TIME,
    "filter_illegal": Code.ILLEGAL_FILTER_EXPRESSION,
    "batch_illegal": Code.MESSAGE_CORRUPTED,
    "receipt_expired": Code.INVALID_RECEIPT_HANDLE,
    "transaction_not_found": Code.INVALID_TRANSACTION_ID,
    "transaction_ended": Code.INVALID_TRANSACTION_ID,
    "transaction_discarded": Code.INVALID_TRANSACTION_ID,
    "transaction_spans_cells": Code.INVALID_TRANSACTION_ID,
    "producer_group_wrong": Code.INVALID_TRANSACTION_ID,
    "commit_log_offset_wrong": Code.INVALID_TRANSACTION_ID,
    "rate_limited": Code.TOO_MANY_REQUESTS,
    "system_busy": Code.TOO_MANY_REQUESTS,
    "cell_away": Code.TOO_MANY_REQUESTS,
    "topic_moved": Code.TOO_MANY_REQUESTS,
    "sends_forbidden": Code.TOO_MANY_REQUESTS,
    # At this code clients repeat the message with the same id, which is safe.
    "outcome_unknown": Code.PROXY_TIMEOUT,
    "unauthenticated": Code.UNAUTHORIZED,
}
FAILED = "The broker failed: its log has the details."
OK = Status(code=Code.OK, message="OK")


class Refused(Exception):
    """A call that is refused only over this protocol, with a code that no refusal of the broker has."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def of_refusal(refusal: Refusal) -> Status:
    """The status for a refusal."""
    return Status(code=CODE_OF.get(refusal.code, Code.INTERNAL_SERVER_ERROR), message=refusal.detail)


def of_problem(problem: Exception) -> Status | None:
    """The status for a problem of a call; None for a failure of the broker itself, which the caller logs."""
    if isinstance(problem, Refused):
        return Status(code=problem.code, message=problem.detail)
    refusal = refusal_of(problem)
    return None if refusal is None else of_refusal(refusal)


def failed() -> Status:
    """The status of a call in which the broker itself failed."""
    return Status(code=Code.INTERNAL_SERVER_ERROR, message=FAILED)


def together(found: list[Status]) -> Status:
    """The status of an answer whose entries have statuses: their common status, or MULTIPLE_RESULTS if they differ."""
    codes = {one.code for one in found}
    if len(codes) == 1:
        return found[0]
    return Status(code=Code.MULTIPLE_RESULTS, message="The entries differ: each has its own status.")
