"""Subscribers: subscriptions that may be pushed, as a process knows them for a moment, and how their servers fare."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from delivery.rows import CircuitState, HeldSubscription, Probe, SubscriptionRow
from store.db import connections
from store.db.statements import Statement
from webhooks.answers import Answer
from webhooks.health import ROTATION_HOURS, Callee, Health

logger = structlog.stdlib.get_logger(__name__)

FIND_SUBSCRIPTIONS = Statement(__file__, "find_subscriptions", SubscriptionRow)
CLAIM_PUSH_PROBE = Statement(__file__, "claim_push_probe", Probe)
HOLD_SUBSCRIPTION = Statement(__file__, "hold_subscription", HeldSubscription)
UPDATE_PUSH_CIRCUIT = Statement(__file__, "update_push_circuit", CircuitState)

SUCCESS_NOTED_SECONDS = 10.0


class SubscriptionStopped(Exception):
    """The subscription may not be pushed any more."""


health = Health(CLAIM_PUSH_PROBE, UPDATE_PUSH_CIRCUIT)


@dataclass(slots=True)
class Subscriber(Callee):
    """A subscription while it is pushed."""

    name: str
    group: str
    ordered: bool
    topic: str
    filter: Any
    last_success_at: datetime | None

    @property
    def success_is_old(self) -> bool:
        """Whether a success is worth writing although it changes nothing else."""
        last = self.last_success_at
        return last is None or (self.now() - last).total_seconds() >= SUCCESS_NOTED_SECONDS


async def find(ids: Sequence[int]) -> list[Subscriber]:
    """Those of these ids that are neither paused nor disabled, and have their group and their topic."""
    rows = await connections.read(FIND_SUBSCRIPTIONS, {"ids": list(ids), "rotation_hours": ROTATION_HOURS})
    return [
        Subscriber.of(
            row,
            name=row.name,
            group=row.group_name,
            ordered=row.ordered,
            topic=row.topic_name,
            filter=row.filter,
            last_success_at=row.last_success_at,
        )
        for row in rows
    ]


@dataclass(slots=True)
class Beginning:
    """The beginning of one call, which no pause overtakes: it does not begin after the answer to a pause."""

    subscriber: Subscriber
    # It may not begin: the subscription or its group is paused, disabled or gone, or the database is away.
    refused: bool = False

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keeps the subscription and its group from being paused meanwhile.

        Raises SubscriptionStopped when they are, or SystemBusy.
        """
        self.refused = True
        async with connections.transaction() as connection:
            if not await connections.execute(connection, HOLD_SUBSCRIPTION, {"id": self.subscriber.id}):
                raise SubscriptionStopped(f"The subscription {self.subscriber.name} is not pushed any more.")
            self.refused = False
            yield


async def note(subscriber: Subscriber, answer: Answer) -> None:
    """Keeps what a call says of the subscription's health, and when it last succeeded, to within SUCCESS_NOTED_SECONDS.

    A failure may disable it: the server says that it is gone, or it has only failed for five days.
    """
    before = subscriber.circuit.state
    keep_success = subscriber.success_is_old
    if answer.ok:
        subscriber.last_success_at = subscriber.now()
    await health.note(subscriber, answer, keep_success=keep_success)
    if subscriber.circuit.state == "disabled" != before:
        logger.warning("a subscription is disabled", subscription=subscriber.name, reason=answer.reason)
