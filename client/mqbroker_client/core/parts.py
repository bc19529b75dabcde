"""Calls as parts of one request: chooses which waiting calls are sent together."""

from collections import deque
from typing import Any, TypeVar
from uuid import UUID

from mqbroker_client.core.calls import Call

#: The broker's limit of operations in a bulk, and the maximum bytes of a bulk.
MAX_OPERATIONS = 1_000
MAX_BYTES = 4 * 1024 * 1024


class Part:
    """A call that waits to be sent, together with other calls, as one part of the next request."""

    __slots__ = ("call", "size", "transaction_id")

    def __init__(self, call: Call[Any]) -> None:
        self.call = call
        self.size = len(call.content or b"")
        self.transaction_id = call.operation.transaction_id if call.operation else None


AnyPart = TypeVar("AnyPart", bound=Part)


def taken(waiting: deque[AnyPart]) -> list[AnyPart]:
    """Removes and returns the first waiting calls, as many as one request may have, and at least one.

    Two calls for one transaction are put into two requests, because the half message must be stored before its end is
    sent.
    """
    together: list[AnyPart] = []
    size, transactions = 0, set[UUID]()
    while waiting and len(together) < MAX_OPERATIONS:
        next_one = waiting[0]
        if together and (size + next_one.size > MAX_BYTES or next_one.transaction_id in transactions):
            break
        together.append(waiting.popleft())
        size += next_one.size
        if next_one.transaction_id is not None:
            transactions.add(next_one.transaction_id)
    return together
