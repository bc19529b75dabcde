"""Outcomes of checks: a decision, or the time of the next check; written by group commit."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.ids import new_id
from transactions import STATE_OF, CheckAnswer, schedule
from transactions.checks import questions
from transactions.operations.end import INSERT_CHECK_ATTEMPTS, End
from transactions.rows import ClaimedHalf
from webhooks.callees import Callee
from webhooks.endpoint_answers import Answer, sentence

POSTPONE_CHECKS = Statement(__file__, "postpone_checks")
RETURN_CHECKS = Statement(__file__, "return_checks")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of a check of one transaction: the endpoint, and its answer.

    `counted`: whether a producer was asked; an attempt that reached no endpoint does not count. `answer` is None for an
    attempt that reached no endpoint, and for a check that was handed to a poll, which answers by an end.
    """

    transaction_id: uuid.UUID
    endpoint_id: int | None
    endpoint_url: str | None
    counted: bool
    answer: CheckAnswer | None
    status: int | None
    latency_ms: int
    reason: str | None
    # The seconds until the next check, if this check decides nothing.
    wait_seconds: float

    def row(self) -> dict[str, object]:
        """The parameters of INSERT_CHECK_ATTEMPTS."""
        return {
            "attempt_id": new_id(),
            "transaction_id": self.transaction_id,
            "endpoint_id": self.endpoint_id,
            "endpoint_url": self.endpoint_url,
            "counted": self.counted,
            "status": self.status,
            "latency_ms": self.latency_ms,
            "answer": self.answer,
            "reason": self.reason,
        }


def attempt_of(half: ClaimedHalf, endpoint: Callee, answer: Answer) -> Attempt:
    """The attempt of one half message in an answered call."""
    result = questions.read(answer.body).get(half.transaction_id) if answer.status == 200 else None
    state: CheckAnswer = "UNKNOWN"
    reason: str | None = answer.reason
    if result is not None:
        state, reason = STATE_OF[result.state], None if result.remark is None else sentence(result.remark)
    elif answer.ok and answer.asked:
        reason = questions.void(answer)
    elif answer.asked and answer.status is not None:
        reason = f"{answer.reason} {questions.kept(answer.body)}".strip()
    return Attempt(
        transaction_id=half.transaction_id,
        endpoint_id=endpoint.id,
        endpoint_url=endpoint.url,
        counted=answer.asked,
        answer=state if answer.asked else None,
        status=answer.status,
        latency_ms=round(answer.latency_ms),
        reason=reason,
        wait_seconds=schedule.interval_seconds(),
    )


async def apply(attempt: Attempt) -> None:
    """Writes the outcome of one attempt. If the transaction is decided already, only its history changes."""
    if attempt.answer in ("COMMIT", "ROLLBACK"):
        decision = End(
            transaction_id=attempt.transaction_id,
            decision=attempt.answer,
            decided_by="check",
            remark=attempt.reason,
            attempt=attempt.row(),
        )
        try:
            await writer.run(decision)
        except Refusal as refusal:
            # The transaction was decided during the check, and the first decision stands.
            if refusal.code not in ("transaction_ended", "transaction_discarded", "transaction_not_found"):
                raise
    else:
        await writer.run(Postponement(attempt))


class Postponement(Operation[bool]):
    """A check that decided nothing. All postponements of a batch are one update and one insert."""

    __slots__ = ("attempt",)
    URGENT = True

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt.transaction_id.bytes)
        self.attempt = attempt

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        await postpone(batch, [one.attempt for one in operations])
        for one in operations:
            one.result = True


class Return(Operation[bool]):
    """Takes back checks that were handed out to a poll and did not reach the producer; the attempts have the reason."""

    __slots__ = ("attempts",)

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        super().__init__()
        self.attempts = attempts

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            ids = [attempt.transaction_id for attempt in one.attempts]
            await batch.read(RETURN_CHECKS, {"transaction_ids": ids, "reason": one.attempts[0].reason})
            for attempt in one.attempts:
                batch.insert(INSERT_CHECK_ATTEMPTS, attempt.row())
            one.result = True


async def postpone(batch: Batch, attempts: Sequence[Attempt]) -> None:
    """Writes attempts that decided nothing: counts the attempts that asked a producer, and sets the next checks."""
    if not attempts:
        return
    await batch.read(
        POSTPONE_CHECKS,
        {
            "check_max": schedule.most_checks(),
            "transaction_id": [attempt.transaction_id for attempt in attempts],
            "counted": [attempt.counted for attempt in attempts],
            "reason": [attempt.reason for attempt in attempts],
            "wait_seconds": [attempt.wait_seconds for attempt in attempts],
        },
    )
    for attempt in attempts:
        batch.insert(INSERT_CHECK_ATTEMPTS, attempt.row())
