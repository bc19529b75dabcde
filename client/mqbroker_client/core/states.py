"""The outcome of a local transaction. Anything unclear is UNKNOWN: the broker asks again and nothing is lost."""

import asyncio
import enum
import inspect
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from mqbroker_client.core.documents import in_utf8

log = logging.getLogger(__name__)

LONGEST_REMARK = 256
FAILED = "the producer's function failed; the transaction stays undecided"


class LocalTransactionState(enum.StrEnum):
    """RocketMQ's LocalTransactionState.

    Its spellings are accepted too, such as `LocalTransactionState("COMMIT_MESSAGE")`.
    """

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        found = OF_ROCKETMQ.get(value) if isinstance(value, str) else None
        return None if found is None else cls(found)


OF_ROCKETMQ = {"COMMIT_MESSAGE": "COMMIT", "ROLLBACK_MESSAGE": "ROLLBACK", "UNKNOW": "UNKNOWN"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a local transaction. The remark, of at most LONGEST_REMARK characters, says why it is UNKNOWN."""

    state: LocalTransactionState
    remark: str | None = None


def outcome_of(run: Callable[[], object]) -> Outcome:
    """The state that `run` returns; UNKNOWN for an exception, None or any other result, because it proves nothing about
    the database.
    """
    try:
        return _outcome(run())
    except Exception as error:
        # The function is the program's own and may raise anything. Its traceback stays in this log.
        log.exception(FAILED)
        return unknown(f"{type(error).__name__}: {error}")


def in_thread(run: Callable[[], object]) -> object:
    """Calls `run` and returns its result. Outside of the main thread, SystemExit is raised as an ordinary error.

    In the main thread a signal may have raised it. In another thread it would silently end a thread that answers
    checks.
    """
    try:
        return run()
    except SystemExit as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise RuntimeError(f"SystemExit: {error}") from error


async def outcome_awaited(run: Callable[[], object]) -> Outcome:
    """`outcome_of` for a coroutine function, or for a plain function that may block and therefore runs in a thread."""
    try:
        found = run() if inspect.iscoroutinefunction(run) else await asyncio.to_thread(run)
        return _outcome(await found if inspect.isawaitable(found) else found)
    except Exception as error:
        # The function is the program's own and may raise anything. Its traceback stays in this log.
        log.exception(FAILED)
        return unknown(f"{type(error).__name__}: {error}")


def _outcome(state: object) -> Outcome:
    if isinstance(state, LocalTransactionState):
        return Outcome(state)
    if isinstance(state, str) and (state in OF_ROCKETMQ or state in LocalTransactionState.__members__):
        return Outcome(LocalTransactionState(state))
    return unknown(f"returned {state!r}, not COMMIT, ROLLBACK or UNKNOWN")


def unknown(remark: str) -> Outcome:
    """The outcome UNKNOWN, with the reason cut to the length that the broker accepts."""
    return Outcome(LocalTransactionState.UNKNOWN, in_utf8(remark)[:LONGEST_REMARK])
