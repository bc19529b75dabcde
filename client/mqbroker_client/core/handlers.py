"""The program's own functions that process messages."""

import inspect
from collections.abc import Callable

from mqbroker_client.core.documents import in_utf8
from mqbroker_client.core.messages import Delivery, Message, StoredMessage

LONGEST_REASON = 1_000

#: Handles one delivery. If it returns, the delivery is acked, and messages that it returned are sent; if it raises an
#: exception, the delivery is nacked.
Handler = Callable[[Delivery], object]


class Redeliver(Exception):
    """A handler raises this error if the message is not done and has to be delivered again after this delay, instead of
    the group's retry delay.
    """

    def __init__(self, delay_seconds: float, reason: str | None = None) -> None:
        super().__init__(reason or f"to be handed out again in {delay_seconds:g} s")
        self.delay_seconds = delay_seconds


def require_run(result: object, way_out: str) -> None:
    """Raises TypeError if a handler returned a coroutine or a generator, whose code has not run.

    Otherwise its message would be acked, or its row of the inbox kept, without the work.
    """
    if inspect.iscoroutine(result):
        result.close()  # without this, Python warns that it was never awaited
    elif not (inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return
    raise TypeError(f"the handler returned a {type(result).__name__} and nothing of it has run: {way_out}")


def messages_of(result: object) -> list[Message]:
    """The messages that a handler returned, one or a list; empty if it returned anything else.

    Raises TypeError for a list that contains messages and other things.
    """
    found = result if isinstance(result, list | tuple) else [result]
    messages = [each for each in found if isinstance(each, Message) and not isinstance(each, StoredMessage)]
    if messages and len(messages) < len(found):
        raise TypeError("the handler returned messages among others: return a list of messages alone")
    return messages


def delay_seconds(error: BaseException) -> float | None:
    """The delay that a handler asked for by Redeliver; None for other errors."""
    return error.delay_seconds if isinstance(error, Redeliver) else None


def reason_of(error: BaseException) -> str:
    """The text of an error for the message's trace."""
    return in_utf8(f"{type(error).__name__}: {error}")[:LONGEST_REASON]
