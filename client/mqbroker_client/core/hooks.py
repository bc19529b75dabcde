"""Hooks: functions of the program that run around calls and handlers, as RocketMQ's SendMessageHook does.

    @contextmanager
    def timed(context: HookContext) -> Iterator[None]:
        began = time.monotonic()
        yield
        print(context.kind, context.topic, time.monotonic() - began, context.result)

    broker = Broker(url, api_key, hooks=[timed])

An error that a hook raises before its `yield` forbids the call, as RocketMQ's CheckForbiddenHook does: the caller gets
the error, and nothing is sent. An error after the `yield` is only logged: stored messages stay stored.
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

#: Calls to the broker, and functions of the program: `check` for a half message, `handle` for a delivery.
Kind = Literal["send", "begin", "end", "receive", "ack", "nack", "return", "extend", "check", "handle"]


@dataclass(slots=True)
class HookContext:
    """A call or a function, as a hook sees it. After the hook's `yield` the same object also has the result."""

    kind: Kind
    #: The producer group for `begin`, `end` and `check`; the consumer group for the others; None for a send.
    group: str | None = None
    topic: str | None = None
    #: The stored messages of `send`, `begin`, and an ack that sends; the half message of `check`.
    messages: Sequence[Message] = ()
    transaction_id: UUID | None = None
    #: For `end`: the state that the end gives to the transaction.
    state: LocalTransactionState | None = None
    #: For `handle`: the delivery that the function handles.
    delivery: Delivery | None = None
    #: The receipt handles of `ack`, `nack`, `return` and `extend`; empty for a pushed delivery.
    receipt_handles: Sequence[str] = ()
    #: The W3C trace context with which the messages are stored. A hook may set it before its `yield`.
    traceparent: str | None = None
    #: After the `yield`: the result of the call or function; None if it raised, in which case the hook's `yield` raises
    #: too. For a call that was sent with others it may be a `BrokerError`.
    result: object = None


def handled(group: str | None, topic: str | None, delivery: Delivery) -> HookContext:
    """The context for the handling of a delivery."""
    return HookContext("handle", group, topic, delivery=delivery)


def checked(half: HalfMessage) -> HookContext:
    """The context for the check of a half message."""
    return HookContext("check", half.producer_group, half.topic, (half,), half.transaction_id)


#: Returns a context manager for the time of the call, or None if the hook does not handle this call.
Hook = Callable[[HookContext], "AbstractContextManager[object] | None"]


@contextmanager
def entered(hooks: Sequence[Hook], *contexts: HookContext) -> Iterator[None]:
    """Runs the hooks around the block, in their order. An error of the block is raised even if a hook suppresses it."""
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
    """Leaves the entered contexts, the last one first."""
    for around in reversed(begun):
        try:
            around.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Exception as problem:
            if problem is not error:
                log.warning("a hook failed behind what it is around: %r", problem, exc_info=problem)


class LoggingHook:
    """Logs a line for each call and function, with its duration and without bodies; as WARNING if it failed."""

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
