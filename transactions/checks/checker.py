"""Check-back: asks producers about half messages that are due, in one task for each producer group.

1. Each group with due half messages and a callable endpoint gets a task, MAX_GROUPS at once. So a slow or failing
   endpoint delays only the checks of its own group.
2. The task claims half messages of its group in a transaction of its own, so that no row is locked during a call. The
   claim is short and is renewed during the calls: if the worker dies, its checks are late by CLAIM_SECONDS, not lost.
3. The task asks about them (`calls`), and the group commit writes the outcomes (`outcomes`).
4. The task continues while more half messages become due before the next tick of beat.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

import structlog

from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Note
from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from store.process import runtime
from transactions import endpoints, results
from transactions.checks.calls import Calls
from transactions.checks.rows import ClaimedHalf
from transactions.operations.located import OfTransaction
from transactions.reads import states
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import Awaited
from webhooks.callees import Callee
from webhooks.slots import Allowance


class SecondsToNextCheck(NamedTuple):
    """Seconds until a group's next check is due, negative if it is late; null if no half message is pending."""

    seconds: float | None


class NextCheck(NamedTuple):
    """When a pending half message is checked next, and how many checks it has had."""

    next_check_at: datetime
    check_times: int


class RenewedClaim(NamedTuple):
    """A half message whose claim was renewed."""

    claimed_until: datetime


class GroupWithDueHalves(NamedTuple):
    """A producer group with due checks and an endpoint that may be called."""

    group_id: int
    name: str


logger = structlog.stdlib.get_logger(__name__)

RENEW_CLAIMS = Statement(__file__, "renew_claims", RenewedClaim)
CHECK_NOW = Statement(__file__, "check_now", NextCheck)
CLAIM_HALVES = Statement(__file__, "claim_halves", ClaimedHalf)
GROUPS_WITH_DUE_HALVES = Statement(__file__, "groups_with_due_halves", GroupWithDueHalves)
SECONDS_TO_NEXT_CHECK = Statement(__file__, "seconds_to_next_check", SecondsToNextCheck)

# Beat ticks every two seconds. A task waits for half messages that become due before the next tick, so that a check
# comes in time: with the ticks alone an interval of 2 s became 4 s.
AHEAD_SECONDS = 2.0
# The pause between two claims of a group whose half messages become due one by one, so that a claim takes several.
PAUSE_SECONDS = 0.2
MAX_GROUPS = 500
# The longest time of a group's task while other groups wait for one of the MAX_GROUPS tasks.
TURN_SECONDS = 10.0
# Claims of a group at once: while the outcomes of one are written, the endpoint answers the calls of the other.
CLAIMS_AT_ONCE = 2
# The most half messages of a claim.
MAX_CLAIM = 1000
# Calls that each slot of an endpoint makes one after another for a claim: enough to keep the endpoint busy.
ROUNDS = 3
# If a worker dies, the checks that it claimed are late by this time, and until a tick or a poll finds them: 15 s at
# most. Two renewals may fail before other processes ask too.
CLAIM_SECONDS = 9.0
RENEWAL_SECONDS = 3.0
# The most bytes of bodies and properties in a claim (the first half message is always claimed), and in all claims of
# this process at once. Encoded they usually have a third more bytes, as text of control characters six times as many.
MAX_CLAIM_BYTES = 8 * 1024 * 1024
MAX_BYTES_AT_ONCE = 32 * 1024 * 1024
# How long a claim waits until other claims free their bytes; then its half messages wait for the end of the claim.
BYTES_WAIT_SECONDS = 10.0


async def make_due(transaction_id: uuid.UUID, note: Note | None = None) -> Awaited:
    """Makes a pending transaction due for a check now: the next tick of beat or the producer's next poll finds it.

    Starts no check itself, because that would start the due checks of all groups in this web process. Raises
    TransactionNotFound, TransactionDiscarded or TransactionEnded if the transaction is not pending.
    """
    return await writer.run(QuestionNow(transaction_id), note)


class QuestionNow(OfTransaction[Awaited]):
    """Makes a half message due for a check, by one update."""

    __slots__ = ()

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            rows = await batch.read(CHECK_NOW, {"transaction_id": one.transaction_id})
            if rows:
                one.before = {"state": "PREPARED"}
                one.result = results.awaited(one.transaction_id, rows[0].check_times, rows[0].next_check_at)
            else:
                found = await batch.read(FIND_TRANSACTIONS, {"transaction_ids": [one.transaction_id]})
                one.refusal = states.not_pending(one.transaction_id, found[0] if found else None)


async def seconds_to_next(group_id: int) -> float | None:
    """Seconds until a group's next check is due, negative if it is late; None without a pending half message."""
    [row] = await connections.read(SECONDS_TO_NEXT_CHECK, {"group_id": group_id})
    return row.seconds


@dataclass(slots=True)
class Group:
    """A producer group with due half messages."""

    id: int
    name: str
    #: When the task began, by the event loop's clock.
    began: float


class Checker:
    """The checks of one process: at most one task for each producer group."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._max_groups = max_groups
        self._last_group_id = 0
        self._crowded = False
        self._calls = Calls()
        self._bodies = Allowance(MAX_BYTES_AT_ONCE)

    @property
    def groups(self) -> set[int]:
        """The ids of the groups that have a task now."""
        return set(self._asking)

    async def run(self, late_seconds: float = -AHEAD_SECONDS) -> None:
        """Starts a task for each group without a task and with a half message that is late by `late_seconds`.

        Negative seconds mean a half message that becomes due within this time; the task then waits for it.
        """
        free = self._max_groups - len(self._asking)
        rows = await self._due_groups(late_seconds, free) if free else ()
        self._crowded = len(rows) == free
        for row in rows:
            self._last_group_id = row.group_id
            if row.group_id not in self._asking:
                group = Group(row.group_id, row.name, asyncio.get_running_loop().time())
                self._asking[group.id] = asyncio.create_task(self._run_task(group), name=f"check {group.name}")

    async def close(self) -> None:
        """Ends the tasks. Half messages that they claimed are checked again after the end of the claim."""
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        self._asking.clear()
        await self._calls.close()

    async def _due_groups(self, late_seconds: float, max_groups: int) -> Sequence[GroupWithDueHalves]:
        """The due groups after the one that was started last, in a circle, so that every group has its turn."""
        return await connections.read(
            GROUPS_WITH_DUE_HALVES,
            {
                "late_seconds": late_seconds,
                "max_groups": max_groups,
                "asking": list(self._asking),
                "after_id": self._last_group_id,
            },
        )

    async def _run_task(self, group: Group) -> None:
        try:
            await self._ask_group(group)
        finally:
            self._asking.pop(group.id, None)

    async def _ask_group(self, group: Group) -> None:
        """Claims and asks until no half message is due before the next tick, or no endpoint can be called."""
        loop = asyncio.get_running_loop()
        next_tick = loop.time() + AHEAD_SECONDS
        while await self._ask_what_is_due(group):
            try:
                seconds = await seconds_to_next(group.id)
            except Refusal:
                break
            if seconds is None or loop.time() + seconds > next_tick:
                break
            await asyncio.sleep(max(seconds, PAUSE_SECONDS))

    async def _ask_what_is_due(self, group: Group) -> bool:
        """Asks about half messages that are due. Returns whether none is left."""
        return all(await asyncio.gather(*(self._ask_claims(group) for _ in range(CLAIMS_AT_ONCE))))

    async def _ask_claims(self, group: Group) -> bool:
        """Makes one claim after another. Returns whether no due half message is left."""
        most = MAX_CLAIM
        try:
            while candidates := await endpoints.callable_endpoints(group.id):
                asked = await self._ask_claim(group, candidates, most)
                if not asked:
                    return True
                if self._turn_is_over(group):
                    return False
                # A claim takes few large half messages, so the next one locks at most twice as many to read their
                # sizes.
                most = min(2 * asked, MAX_CLAIM)
        except Refusal as refusal:
            logger.warning("checks stopped", group=group.name, reason=refusal.detail)
        except TimeoutError:
            logger.warning(
                "checks wait for the end of their claim: the bodies of other checks fill the budget", group=group.name
            )
        except Exception:
            logger.exception("checks failed", group=group.name)
        return False

    def _turn_is_over(self, group: Group) -> bool:
        return self._crowded and asyncio.get_running_loop().time() > group.began + TURN_SECONDS

    async def _ask_claim(self, group: Group, candidates: Sequence[Callee], most: int) -> int:
        """Claims at most `most` half messages and asks about them. Returns their number."""
        halves = await connections.read(
            CLAIM_HALVES,
            {
                "group_id": group.id,
                "claim_seconds": CLAIM_SECONDS,
                "max_halves": min(sum(one.concurrency * one.max_batch for one in candidates) * ROUNDS, most),
                "max_bytes": MAX_CLAIM_BYTES,
                "topic_ids": None,
            },
        )
        if not halves:
            return 0
        renewals = asyncio.create_task(_renew(halves), name=f"renew the claim of {group.name}")
        try:
            async with self._bodies.hold(halves[0].claimed_bytes, BYTES_WAIT_SECONDS):
                await self._calls.ask(group.name, halves, candidates)
        finally:
            renewals.cancel()
        return len(halves)


async def _renew(halves: Sequence[ClaimedHalf]) -> None:
    """Renews a claim until this task is cancelled, or all its half messages have an outcome."""
    ids, until = [half.transaction_id for half in halves], halves[0].claimed_until
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        claim = {"transaction_ids": ids, "claimed_until": until, "claim_seconds": CLAIM_SECONDS}
        try:
            renewed = await connections.read(RENEW_CLAIMS, claim)
        except Refusal:
            continue
        if not renewed:
            return
        until = renewed[0].claimed_until


async def run(late_seconds: float = -AHEAD_SECONDS) -> None:
    """Starts the checks that are due; as `Checker.run`."""
    await runtime.part(Checker).run(late_seconds)
