"""Polled checks: a producer without an endpoint asks the broker for half messages whose check is due."""

import asyncio
import contextlib
import math
import random
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec
from django.conf import settings

from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.db import connections
from store.db.statements import Statement
from store.db.ttl_cache import TtlCache
from store.errors import require_between
from store.process import runtime
from store.process.answer_budget import Hold
from store.process.runtime import CONTROL, Runtime
from store.reading import holders
from transactions import groups, schedule
from transactions.checks import outcomes, questions
from transactions.checks.claims import CLAIM_HALVES, seconds_to_next
from transactions.checks.outcomes import Attempt, Return
from transactions.checks.questions import Document
from transactions.rows import ClaimedHalf, TopicName

LIST_TOPIC_NAMES = Statement(__file__, "list_topic_names", TopicName)

MAX_TOPICS = 100_000
MAX_TRANSACTIONS = 100
DEFAULT_TRANSACTIONS = 32
# The most bytes of bodies and properties in one answer. The first transaction is handed out whatever its size.
MAX_BYTES = 8 * 1024 * 1024
# A half message that is stored during the wait, or made due by an operator, is found after at most this time.
LONGEST_PAUSE_SECONDS = 1.0
# The pause before the next try, if a due half message was not handed out: another process has claimed it, its checks
# are paused, or its topic is outside the key's scopes.
SHORTEST_PAUSE_SECONDS = 0.2

# The reasons why an attempt decided nothing. A check that is taken back is due again at once.
HANDED_OUT = "Handed out to a polling producer."
RETURNED = "The polling producer hung up before its answer: the check that was handed out does not count."

# Whether a key may get the checks of a topic, by the topic's name.
IsAllowed = Callable[[str], bool]


class ReceiveChecks(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request of a poll."""

    max_transactions: int = DEFAULT_TRANSACTIONS
    wait_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Received:
    """The result of a poll: the transactions to check, each with its document."""

    documents: dict[uuid.UUID, Document]
    cell: int = CONTROL

    async def given_back(self, gone: asyncio.Future[object]) -> bool:
        """Takes the checks back if the producer's connection is `gone`, and does not count them. Raises SystemBusy.

        Called just before the answer is written. A check counts if the connection is lost after that.
        """
        if not gone.done() or not self.documents:
            return False
        with runtime.in_cell(self.cell):
            await writer.run(Return([_attempt(transaction_id, RETURNED) for transaction_id in self.documents]))
        return True


async def receive(
    group_name: str,
    request: ReceiveChecks,
    hold: Hold,
    gone: asyncio.Future[Any] | None = None,
    allowed: Callable[[], Awaitable[IsAllowed | None]] | None = None,
) -> Received:
    """The documents of the group's transactions whose check is due. Each transaction that is returned counts as
    checked.

    Waits up to `wait_seconds` for the first transaction, but not for a producer that is `gone`, because it would not
    see the checks. Transactions with topics that are not `allowed` are left out; None allows all topics. `allowed` is
    called before each claim, and raises the refusal of a key that was revoked or narrowed during the wait. The bodies
    count in `hold`. Raises GroupNotExist, MessageIllegal, or SystemBusy while too many bytes of answers are in flight;
    then no check is counted.
    """
    _validate(request)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.wait_seconds
    received: Received | None = None
    due_in = 0.0  # A new poll tries to claim at once. A waiting poll tries only if a check is due.
    while gone is None or not gone.done():
        group = await groups.existing(group_name)  # read in each round, because checks may be paused during the wait
        if due_in <= 0 and not group.checks_paused:
            topic_ids = None if allowed is None else await _topics(await allowed())
            await hold.room()
            received = await _received(group.id, request.max_transactions, topic_ids, hold)
        left = deadline - loop.time()
        if received is not None or left <= 0:
            break
        due_in = await _seconds_to_next(group.id)
        await _wait(min(left, max(due_in, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS), gone)
        due_in = await _seconds_to_next(group.id)
    return received or Received({})


async def _received(group_id: int, most: int, topic_ids: list[int] | None, hold: Hold) -> Received | None:
    """The due checks of one cell; None if no cell has any.

    The cells are asked one after another, starting with another cell each time. Raises SystemBusy if all cells are
    away.
    """
    max_bytes = min(MAX_BYTES, hold.page())
    cells = runtime.cells()
    claims = holders.in_turn(
        random.sample(cells, len(cells)), lambda: writer.run(Handout(group_id, most, max_bytes, topic_ids))
    )
    async with contextlib.aclosing(claims):
        async for cell, halves in claims:
            hold.set(halves[0].claimed_bytes if halves else 0)
            if halves:
                with cell.entered():
                    documents = await questions.transactions(halves)
                found = {half.transaction_id: documents.get(half.transaction_id) for half in halves}
                located = {id_: _located(document, cell) for id_, document in found.items() if document}
                return Received(located, cell.cell)
    return None


def _located(document: Document, cell: Runtime) -> Document:
    """The document with the transaction's cell, where cells are named."""
    return document if (name := runtime.placement.label(cell)) is None else {**document, "cell": name}


async def _topics(may_produce: IsAllowed | None) -> list[int] | None:
    if may_produce is None:
        return None
    rows = await connections.read_control(LIST_TOPIC_NAMES, {"max_topics": MAX_TOPICS})
    return [row.id for row in rows if may_produce(row.name)]


class NextChecks:
    """When the next check of each group is due, by the event loop's clock. All polls of a group share one look-up.

    Without this, 300 waiting polls asked the database 600 times a second.
    """

    def __init__(self) -> None:
        self.due_at: TtlCache[int, float] = TtlCache(SHORTEST_PAUSE_SECONDS / 2, since_answer=True)


async def _seconds_to_next(group_id: int) -> float:
    """The seconds until the group's next check is due, negative for a late check; infinite without a pending half
    message. Raises SystemBusy if all cells are away.
    """
    found = holders.in_turn(runtime.cells(), lambda: _seconds_to_next_here(group_id))
    return min([due_in async for _, due_in in found])


async def _seconds_to_next_here(group_id: int) -> float:
    loop = asyncio.get_running_loop()

    async def look_up() -> float:
        seconds = await seconds_to_next(group_id)
        return math.inf if seconds is None else loop.time() + seconds

    due_at = await runtime.part(NextChecks).due_at.get(group_id, look_up)
    return math.inf if due_at is None else due_at - loop.time()


async def _wait(seconds: float, gone: asyncio.Future[Any] | None) -> None:
    if gone is None:
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait((gone,), timeout=seconds)


def _validate(request: ReceiveChecks) -> None:
    require_between("max_transactions", request.max_transactions, 1, MAX_TRANSACTIONS)
    require_between("wait_seconds", request.wait_seconds, 0, settings.MAX_WAIT_SECONDS)


class Handout(Operation[Sequence[ClaimedHalf]]):
    """Claims half messages for a poll and counts their checks in one transaction; only of `topic_ids`, if given."""

    __slots__ = ("group_id", "max_bytes", "max_transactions", "topic_ids")
    LANE = "polls"
    IS_READ = True

    def __init__(self, group_id: int, max_transactions: int, max_bytes: int, topic_ids: list[int] | None) -> None:
        super().__init__()
        self.group_id = group_id
        self.max_transactions = max_transactions
        self.max_bytes = max_bytes
        self.topic_ids = topic_ids

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            claim = {
                "group_id": one.group_id,
                "claim_seconds": schedule.interval_seconds(),
                "max_halves": one.max_transactions,
                "max_bytes": one.max_bytes,
                "topic_ids": one.topic_ids,
            }
            halves = one.result = await batch.read(CLAIM_HALVES, claim)
            await outcomes.postpone(batch, [_attempt(half.transaction_id, HANDED_OUT) for half in halves])


def _attempt(transaction_id: uuid.UUID, reason: str) -> Attempt:
    return Attempt(
        transaction_id=transaction_id,
        endpoint_id=None,
        endpoint_url=None,
        counted=reason == HANDED_OUT,
        answer=None,
        status=None,
        latency_ms=0,
        reason=reason,
        wait_seconds=schedule.interval_seconds(),
    )
