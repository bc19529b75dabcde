"""The program's own functions that do the work of a message."""

import inspect
from collections.abc import Callable

from mqbroker_client.core.documents import in_utf8
from mqbroker_client.core.messages import Delivery, Message, StoredMessage

LONGEST_REASON = 1_000

#: Does the work of one delivery. Its return acks, and sends the messages that it returns; its exception nacks.
Handler = Callable[[Delivery], object]


class Redeliver(Exception):
    """Raised by a handler: not done, hand it out again after this time, and not after the group's retry delay."""

    def __init__(self, delay_seconds: float, reason: str | None = None) -> None:
        super().__init__(reason or f"to be handed out again in {delay_seconds:g} s")
        self.delay_seconds = delay_seconds


def require_run(result: object, way_out: str) -> None:
    """Raises TypeError where a handler returned what has not run: a coroutine, or a generator.

    Taken for done, its message would be acked, or its row of the inbox kept, without the work.
    """
    if inspect.iscoroutine(result):
        result.close()  # it warns otherwise that it was never awaited
    elif not (inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return
    raise TypeError(f"the handler returned a {type(result).__name__} and nothing of it has run: {way_out}")


def messages_of(result: object) -> list[Message]:
    """The messages that a handler returned, one or a list of them; none for whatever else it returned.

    Raises TypeError for a list that has others beside messages.
    """
    found = result if isinstance(result, list | tuple) else [result]
    messages = [each for each in found if isinstance(each, Message) and not isinstance(each, StoredMessage)]
    if messages and len(messages) < len(found):
        raise TypeError("the handler returned messages among others: return a list of messages alone")
    return messages


def delay_seconds(error: BaseException) -> float | None:
    """The delay that a handler asked for."""
    return error.delay_seconds if isinstance(error, Redeliver) else None


def reason_of(error: BaseException) -> str:
    """What the message's trace keeps."""
    return in_utf8(f"{type(error).__name__}: {error}")[:LONGEST_REASON]
