"""Hooks: what a program has run around its calls and its own functions, as by RocketMQ's SendMessageHook.

    @contextmanager
    def timed(context: HookContext) -> Iterator[None]:
        began = time.monotonic()
        yield
        print(context.kind, context.topic, time.monotonic() - began, context.result)

    broker = Broker(url, api_key, hooks=[timed])

What a hook raises before its `yield` forbids the call, as RocketMQ's CheckForbiddenHook does: it is raised where the
call is made, and nothing goes to the broker. What a hook raises behind is logged: what was stored stays stored.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.states import LocalTransactionState

log = logging.getLogger(__name__)

#: Calls to the broker, and the program's own functions: `check` of a half, `handle` of a delivery.
Kind = Literal["send", "begin", "end", "receive", "ack", "nack", "return", "extend", "check", "handle"]


@dataclass(slots=True)
class HookContext:
    """A call or a function, as a hook sees it. After its `yield` the same object has the result."""

    kind: Kind
    #: The producer group of `begin`, `end` and `check`; the consumer group of the others; a send names none.
    group: str | None = None
    topic: str | None = None
    #: Of `send` and `begin`, and of an ack that sends: those that are stored. Of `check`: the half.
    messages: Sequence[Message] = ()
    transaction_id: UUID | None = None
    #: What `end` gives.
    state: LocalTransactionState | None = None
    #: Of `handle`.
    delivery: Delivery | None = None
    #: Of `ack`, `nack`, `return` and `extend`; a pushed delivery has none.
    receipt_handles: Sequence[str] = ()
    #: The W3C trace context that the messages are stored with. A hook may set it before its `yield`.
    traceparent: str | None = None
    #: After it: what the call or the function returned; None where it raised, which the hook's `yield` raises, too. Of
    #: calls that went together it may be the `BrokerError` of this one.
    result: object = None


def handled(group: str | None, topic: str | None, delivery: Delivery) -> HookContext:
    """The handling of a delivery."""
    return HookContext("handle", group, topic, delivery=delivery)


def checked(half: HalfMessage) -> HookContext:
    """The check of a half."""
    return HookContext("check", half.producer_group, half.topic, (half,), half.transaction_id)


#: Gives what is entered before and left after, or None for a call that it has nothing to do with.
Hook = Callable[[HookContext], "AbstractContextManager[object] | None"]


@contextmanager
def entered(hooks: Sequence[Hook], *contexts: HookContext) -> Iterator[None]:
    """Each hook in its order around the block. An error of the block is raised, whatever a hook makes of it."""
    begun: list[AbstractContextManager[object]] = []
    try:
        for context in contexts:
            for hook in hooks:
                if (around := hook(context)) is not None:
                    around.__enter__()
                    begun.append(around)
        yield
    except BaseException as error:
        leave(begun, error)
        raise
    leave(begun, None)


def leave(begun: Sequence[AbstractContextManager[object]], error: BaseException | None) -> None:
    """Leaves what was entered, the last one first."""
    for around in reversed(begun):
        try:
            around.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Exception as problem:
            if problem is not error:
                log.warning("a hook failed behind what it is around: %r", problem, exc_info=problem)


class LoggingHook:
    """A line of a log for each call and function, with its time and without bodies; a WARNING where it failed."""

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        self.logger = logger or logging.getLogger("mqbroker_client")
        self.level = level

    @contextmanager
    def __call__(self, context: HookContext) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except BaseException as error:
            took_ms = (time.perf_counter() - began) * 1000
            self.logger.warning("%s failed after %.1f ms: %s: %s", _said(context), took_ms, type(error).__name__, error)
            raise
        self.logger.log(self.level, "%s: %.1f ms", _said(context), (time.perf_counter() - began) * 1000)


def _said(context: HookContext) -> str:
    ids = [str(message.message_id) for message in context.messages]
    ids += [str(context.transaction_id)] if context.transaction_id else []
    ids += [str(context.delivery.message.message_id)] if context.delivery else []
    words = [context.kind, context.state, context.topic, context.group and f"({context.group})", *ids[:3]]
    return " ".join(str(word) for word in words if word) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
