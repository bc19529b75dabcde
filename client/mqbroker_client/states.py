"""What a local transaction came to; anything unclear is UNKNOWN: the broker asks again and nothing is lost."""

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)

LONGEST_REMARK = 256


class LocalTransactionState(enum.StrEnum):
    """RocketMQ's LocalTransactionState."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Outcome:
    state: LocalTransactionState
    remark: str | None = None


def outcome_of(run: Callable[[], object]) -> Outcome:
    """The state that `run` returns. An exception, None or anything else says nothing about the database: UNKNOWN."""
    try:
        state = run()
    except Exception as error:
        # The function is the program's own and may raise anything. Its traceback stays in this log.
        log.exception("the producer's function failed; the transaction stays undecided")
        return Outcome(LocalTransactionState.UNKNOWN, _remark(f"{type(error).__name__}: {error}"))
    if isinstance(state, LocalTransactionState):
        return Outcome(state)
    return Outcome(LocalTransactionState.UNKNOWN, _remark(f"returned {state!r}, not COMMIT, ROLLBACK or UNKNOWN"))


def _remark(text: str) -> str:
    return text[:LONGEST_REMARK]
