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
from itertools import count
from typing import Any

import structlog
from django.conf import settings

from store import database
from store.database import Row
from store.errors import Refusal
from store.ids import new_id
from store.statements import Statement
from transactions import ends, health, outcomes, questions
from transactions.health import Endpoint
from transactions.outcomes import Attempt
from webhooks.answers import Answer, sentence
from webhooks.caller import Caller
from webhooks.slots import Slots

logger = structlog.stdlib.get_logger(__name__)

GROUPS_WITH_DUE_HALVES = Statement(__file__, "groups_with_due_halves")
CHECK_NOW = Statement(__file__, "check_now")
CLAIM_HALVES = Statement(__file__, "claim_halves")
SECONDS_TO_NEXT_CHECK = Statement(__file__, "seconds_to_next_check")

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
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024


async def ask_now(transaction_id: uuid.UUID) -> dict[str, Any]:
    """Has a pending transaction asked about at once, whatever its next check was.

    Raises TransactionNotFound, TransactionDiscarded or TransactionEnded when it is not pending.
    """
    rows = await database.read(CHECK_NOW, {"transaction_id": transaction_id})
    if not rows:
        raise await ends.not_pending(transaction_id)
    await run()
    return {"transaction_id": transaction_id, "state": "PREPARED", **rows[0]._asdict()}


async def seconds_to_next(group_id: int) -> float | None:
    """How long it is until a group's next check is due, negative when it is late; None without a pending half."""
    seconds: float | None = (await database.read(SECONDS_TO_NEXT_CHECK, {"group_id": group_id}))[0].seconds
    return seconds


@dataclass(slots=True)
class Group:
    """A producer group whose halves are due."""

    id: int
    name: str


class Checker:
    """The checks of one process: at most one task per producer group."""

    def __init__(self) -> None:
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._caller: Caller | None = None
        self._slots = Slots()
        self._turns = count()

    async def run(self, late_seconds: float = -AHEAD_SECONDS) -> None:
        """Starts to ask every group that has halves due by `late_seconds`, and is not being asked already.

        As a rule by less than none: what is due before the next tick is waited for.
        """
        rows = await database.read(GROUPS_WITH_DUE_HALVES, {"late_seconds": late_seconds, "max_groups": MAX_GROUPS})
        for row in rows:
            if row.group_id not in self._asking:
                task = asyncio.create_task(self._ask_group(Group(row.group_id, row.name)), name=f"check {row.name}")
                self._asking[row.group_id] = task
                task.add_done_callback(partial(self._asked, row.group_id))

    def _asked(self, group_id: int, _: asyncio.Task[None]) -> None:
        del self._asking[group_id]

    async def close(self) -> None:
        """Ends the asking; what was claimed is asked again when its lease is over."""
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()
            self._caller = None

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
        try:
            while endpoints := await health.callable_endpoints(group.id):
                if not await self._ask_claim(group, endpoints):
                    return True
        except Refusal as refusal:
            logger.warning("checks stopped", group=group.name, reason=refusal.detail)
        except Exception:
            logger.exception("checks failed", group=group.name)
        return False

    async def _ask_claim(self, group: Group, endpoints: Sequence[Endpoint]) -> bool:
        """Whether something was due."""
        longest = max(endpoint.timeout_seconds for endpoint in endpoints)
        halves = await database.read(
            CLAIM_HALVES,
            {
                "group_id": group.id,
                "lease_seconds": longest * (ROUNDS * LANES + 1) * len(endpoints) + LEASE_MARGIN_SECONDS,
                "max_halves": min(sum(one.concurrency * one.max_batch for one in endpoints) * ROUNDS, MAX_CLAIM),
                "topic_ids": None,
            },
        )
        if not halves:
            return False
        told = await questions.transactions(halves)
        await asyncio.gather(*(self._ask_chunk(group, chunk, told) for chunk in self._chunks(halves, endpoints)))
        return True

    def _chunks(self, halves: Sequence[Row], endpoints: Sequence[Endpoint]) -> list["Chunk"]:
        """Halves that go to one endpoint in one call, each with the endpoints to turn to when it can't be reached."""
        chunks: list[Chunk] = []
        open_chunks: dict[tuple[int, ...], Chunk] = {}
        for half in halves:
            order = self._order(half, endpoints)
            key = tuple(endpoint.id for endpoint in order)
            chunk = open_chunks.get(key)
            if chunk is None or len(chunk.halves) >= order[0].max_batch:
                chunk = open_chunks[key] = Chunk(order, [])
                chunks.append(chunk)
            chunk.halves.append(half)
        return chunks

    def _order(self, half: Row, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """The sender's own endpoint first, then the others in turn."""
        own = [endpoint for endpoint in endpoints if endpoint.id == half.endpoint_id]
        others = [endpoint for endpoint in endpoints if endpoint.id != half.endpoint_id]
        turn = (half.check_times if own else next(self._turns) // max(endpoints[0].max_batch, 1)) % len(endpoints)
        order = [*own, *others]
        return [*order[turn:], *order[:turn]]

    async def _ask_chunk(self, group: Group, chunk: "Chunk", told: dict[uuid.UUID, dict[str, Any]]) -> None:
        halves = [half for half in chunk.halves if half.transaction_id in told]
        payload = questions.payload(group.name, [told[half.transaction_id] for half in halves])
        endpoint, answer = chunk.order[0], health.unreachable()
        for endpoint in chunk.order:
            async with self._slots.hold(endpoint.id, endpoint.concurrency):
                if not await health.may_call(endpoint):
                    continue
                answer = await self._call(endpoint, payload)
                await health.note(endpoint, answer)
            if answer.asked:
                break
        attempts = [_attempt(half, endpoint, answer) for half in halves]
        await asyncio.gather(*map(outcomes.apply, attempts))

    async def _call(self, endpoint: Endpoint, payload: bytes) -> Answer:
        if self._caller is None:
            self._caller = Caller(settings.WEBHOOK_ALLOWED_NETWORKS)
        return await self._caller.post(
            endpoint.url,
            payload,
            endpoint.secrets,
            f"chk_{new_id()}",
            endpoint.timeout_seconds,
            endpoint.max_batch * 512,
        )


@dataclass(slots=True)
class Chunk:
    """Halves that are asked about in one call, and the endpoints to ask, in order."""

    order: list[Endpoint]
    halves: list[Row]


def _attempt(half: Row, endpoint: Endpoint, answer: Answer) -> Attempt:
    result = questions.read(answer.body).get(half.transaction_id) if answer.status == 200 else None
    state: str = "UNKNOWN"
    reason: str | None = answer.reason
    if result is not None:
        state, reason = result.state, None if result.remark is None else sentence(result.remark)
    elif answer.status is not None:
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
        wait_seconds=float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS),
    )


checker = Checker()
run = checker.run
