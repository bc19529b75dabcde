"""Subscribers: the subscriptions that a process pushes, as last read from the database, and their servers' health."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import structlog

from store.db import connections
from store.db.statements import Statement
from webhooks.callees import ROTATION_HOURS, Callee, Health
from webhooks.endpoint_answers import Answer


class PushedSubscription(NamedTuple):
    """A subscription that may be pushed, with its circuit. `previous_secret` is None once its rotation is over."""

    id: int
    name: str
    group_name: str
    ordered: bool
    topic_name: str
    filter: Any
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secret: str
    previous_secret: str | None
    state: str
    failures: int
    open_until: datetime | None
    last_success_at: datetime | None
    now: datetime


logger = structlog.stdlib.get_logger(__name__)

FIND_SUBSCRIPTIONS = Statement(__file__, "find_subscriptions", PushedSubscription)
CLAIM_PUSH_PROBE = Statement(__file__, "claim_push_probe", one=int)
HOLD_SUBSCRIPTION = Statement(__file__, "hold_subscription", one=int)
UPDATE_PUSH_CIRCUIT = Statement(__file__, "update_push_circuit", one=str)

# The time of the last success is written at most once in this time, unless the state changes too.
SUCCESS_NOTED_SECONDS = 10.0


class SubscriptionStopped(Exception):
    """The subscription may not be pushed any more: it or its group is paused, disabled or deleted."""


health = Health(CLAIM_PUSH_PROBE, UPDATE_PUSH_CIRCUIT)


@dataclass(slots=True)
class Subscriber(Callee):
    """A subscription as this process knows it while it pushes the subscription's messages."""

    name: str
    group: str
    ordered: bool
    topic: str
    filter: Any
    last_success_at: datetime | None

    @property
    def success_is_old(self) -> bool:
        """Whether the last success was written SUCCESS_NOTED_SECONDS ago."""
        last = self.last_success_at
        return last is None or (self.now() - last).total_seconds() >= SUCCESS_NOTED_SECONDS


async def find(ids: Sequence[int]) -> list[Subscriber]:
    """The subscriptions of these ids that are neither paused nor disabled, and whose group and topic exist."""
    rows = await connections.read(FIND_SUBSCRIPTIONS, {"ids": list(ids), "rotation_hours": ROTATION_HOURS})
    found = (
        Subscriber.of_readable(
            row,
            name=row.name,
            group=row.group_name,
            ordered=row.ordered,
            topic=row.topic_name,
            filter=row.filter,
            last_success_at=row.last_success_at,
        )
        for row in rows
    )
    return [subscriber for subscriber in found if subscriber is not None]


@dataclass(slots=True)
class PauseGuard:
    """Guards the start of a call: no call starts after the answer to a pause of the subscription or group."""

    subscriber: Subscriber
    # Whether the call may not begin: subscription or group is paused, disabled or deleted, or the database is away.
    refused: bool = False

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Locks the subscription and its group: an update that pauses one of them waits for the end of the block.

        Raises SubscriptionStopped when one of them is paused, or SystemBusy.
        """
        self.refused = True
        async with connections.transaction() as connection:
            if not await connections.execute(connection, HOLD_SUBSCRIPTION, {"id": self.subscriber.id}):
                raise SubscriptionStopped(f"The subscription {self.subscriber.name} is not pushed any more.")
            self.refused = False
            yield


async def note(subscriber: Subscriber, answer: Answer) -> None:
    """Records a call in the subscription's health, and the last success, at most every SUCCESS_NOTED_SECONDS.

    A failure disables the subscription when the answer is 410, or when all calls have failed for five days.
    """
    before = subscriber.circuit.state
    keep_success = subscriber.success_is_old
    if answer.ok:
        subscriber.last_success_at = subscriber.now()
    await health.note(subscriber, answer, keep_success=keep_success)
    if subscriber.circuit.state == "disabled" != before:
        logger.warning("a subscription is disabled", subscription=subscriber.name, reason=answer.reason)
