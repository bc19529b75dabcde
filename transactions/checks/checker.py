"""Check-back: asks producers about the half messages that nobody ended.

Claim (commit), ask, apply: no row is locked while a stranger's server is awaited. A worker that dies in between delays
the check until its lease is over, and loses nothing. Each group is asked by a task of its own, so that a slow or
exploding endpoint holds up its own group only.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from store import runtime
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.errors import Refusal
from transactions import endpoints, ends
from transactions.checks.calls import Calls
from transactions.rows import ClaimedHalf, GroupWithDueHalves, NextCheck, SecondsToNextCheck
from webhooks.health import Callee
from webhooks.slots import Allowance

logger = structlog.stdlib.get_logger(__name__)

GROUPS_WITH_DUE_HALVES = Statement(__file__, "groups_with_due_halves", GroupWithDueHalves)
CHECK_NOW = Statement(__file__, "check_now", NextCheck)
CLAIM_HALVES = Statement(__file__, "claim_halves", ClaimedHalf)
SECONDS_TO_NEXT_CHECK = Statement(__file__, "seconds_to_next_check", SecondsToNextCheck)

# Beat ticks every two seconds. What falls due before the next tick is waited for, so that a check comes at its time: by
# the ticks alone, an interval of 2 s was one of 4 s.
AHEAD_SECONDS = 2.0
# Claims of a group whose halves fall due one by one are this far apart at least, and take several at a time.
PAUSE_SECONDS = 0.2
MAX_GROUPS = 500
MAX_CLAIM = 1000
# Calls that each place of an endpoint makes one after another within a claim: enough to keep it busy, few enough that
# the lease outlasts them all when each takes its whole time-out.
ROUNDS = 3
# While one claim is written down, the next is already asked about: its endpoint never waits for the database.
LANES = 2
LEASE_MARGIN_SECONDS = 10.0
# So long a claim waits for others' bodies to go; then it is left to its lease.
BYTES_WAIT_SECONDS = 10.0
# Bodies and properties of a claim, the first half's however large; and of all claims that this process asks about at
# once. Encoded they are a third more as a rule, and six times as much when they are text of control characters.
MAX_CLAIM_BYTES = 8 * 1024 * 1024
MAX_BYTES_AT_ONCE = 32 * 1024 * 1024
# So long a group is asked while others wait for one of the MAX_GROUPS places.
TURN_SECONDS = 10.0


async def ask_now(transaction_id: uuid.UUID) -> dict[str, Any]:
    """Has a pending transaction asked about at once, whatever its next check was.

    Raises TransactionNotFound, TransactionDiscarded or TransactionEnded when it is not pending.
    """
    rows = await connections.read(CHECK_NOW, {"transaction_id": transaction_id})
    if not rows:
        raise await ends.not_pending(transaction_id)
    await run()
    return {"transaction_id": transaction_id, "state": "PREPARED", **rows[0]._asdict()}


async def seconds_to_next(group_id: int) -> float | None:
    """How long it is until a group's next check is due, negative when it is late; None without a pending half."""
    seconds: float | None = (await connections.read(SECONDS_TO_NEXT_CHECK, {"group_id": group_id}))[0].seconds
    return seconds


@dataclass(slots=True)
class Group:
    """A producer group whose halves are due."""

    id: int
    name: str
    #: Since when it is asked, by the event loop's clock.
    began: float


class Checker:
    """The checks of one process: at most one task per producer group."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._max_groups = max_groups
        self._last_group_id = 0
        self._crowded = False
        self._calls = Calls()
        self._bodies = Allowance(MAX_BYTES_AT_ONCE)

    async def run(self, late_seconds: float = -AHEAD_SECONDS) -> None:
        """Starts to ask every group that has halves due by `late_seconds`, and is not being asked already.

        As a rule by less than none: what is due before the next tick is waited for.
        """
        free = self._max_groups - len(self._asking)
        rows = await self._due_groups(late_seconds, free) if free else ()
        self._crowded = len(rows) == free
        for row in rows:
            self._last_group_id = row.group_id
            if row.group_id not in self._asking:
                self._start(Group(row.group_id, row.name, asyncio.get_running_loop().time()))

    async def _due_groups(self, late_seconds: float, max_groups: int) -> Sequence[Row]:
        """Those after the group that was started last: in the round every group comes to its turn."""
        return await connections.read(
            GROUPS_WITH_DUE_HALVES,
            {
                "late_seconds": late_seconds,
                "max_groups": max_groups,
                "asking": list(self._asking),
                "after_id": self._last_group_id,
            },
        )

    def _start(self, group: Group) -> None:
        task = asyncio.create_task(self._ask_group(group), name=f"check {group.name}")
        self._asking[group.id] = task
        task.add_done_callback(partial(self._asked, group.id))

    @property
    def groups(self) -> set[int]:
        """The ids of the groups that are just being asked."""
        return set(self._asking)

    def _turn_is_over(self, group: Group) -> bool:
        return self._crowded and asyncio.get_running_loop().time() > group.began + TURN_SECONDS

    def _asked(self, group_id: int, _: asyncio.Task[None]) -> None:
        del self._asking[group_id]

    async def close(self) -> None:
        """Ends the asking; what was claimed is asked again when its lease is over."""
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._calls.close()

    async def _ask_group(self, group: Group) -> None:
        """Claims and asks until nothing is due before the next tick, or nobody can be asked."""
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
        """Whether everything that is due was asked about."""
        return all(await asyncio.gather(*(self._ask_lane(group) for _ in range(LANES))))

    async def _ask_lane(self, group: Group) -> bool:
        most = MAX_CLAIM
        try:
            while candidates := await endpoints.callable_endpoints(group.id):
                asked = await self._ask_claim(group, candidates, most)
                if not asked:
                    return True
                if self._turn_is_over(group):
                    return False
                # Of large halves a claim takes few, and locks no more than twice as many to find that out.
                most = min(2 * asked, MAX_CLAIM)
        except Refusal as refusal:
            logger.warning("checks stopped", group=group.name, reason=refusal.detail)
        except TimeoutError:
            logger.warning("checks wait for their lease: the bodies of other checks fill the budget", group=group.name)
        except Exception:
            logger.exception("checks failed", group=group.name)
        return False

    async def _ask_claim(self, group: Group, candidates: Sequence[Callee], most: int) -> int:
        """The number of halves that were claimed, `most` of them at most, and asked about."""
        longest = max(endpoint.timeout_seconds for endpoint in candidates)
        halves = await connections.read(
            CLAIM_HALVES,
            {
                "group_id": group.id,
                "lease_seconds": longest * (ROUNDS * LANES + 1) * len(candidates)
                + BYTES_WAIT_SECONDS
                + LEASE_MARGIN_SECONDS,
                "max_halves": min(sum(one.concurrency * one.max_batch for one in candidates) * ROUNDS, most),
                "max_bytes": MAX_CLAIM_BYTES,
                "topic_ids": None,
            },
        )
        if not halves:
            return 0
        async with self._bodies.hold(halves[0].claimed_bytes, BYTES_WAIT_SECONDS):
            await self._calls.ask(group.name, halves, candidates)
        return len(halves)


async def run(late_seconds: float = -AHEAD_SECONDS) -> None:
    """Starts the checks that are due; as `Checker.run`."""
    await runtime.part(Checker).run(late_seconds)
