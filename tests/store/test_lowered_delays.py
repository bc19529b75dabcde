"""A maximum of delays that is lowered holds for what is accepted from then on, and for nothing that was accepted."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from store.commit import writer
from store.errors import DelayIllegal
from tests.broker import characters
from tests.store.keeper import Keeper
from transactions.checks import outcomes
from transactions.checks.outcomes import Attempt
from transactions.operations.begin import Begin
from transactions.operations.end import End, EndTransaction
from transactions.operations.validation import BeginTransaction

DAY = timedelta(days=1)


@pytest.fixture(params=["delay_seconds", "deliver_at"])
def delay(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A day, in both ways."""
    return {"delay_seconds": DAY.total_seconds()} if request.param == "delay_seconds" else {"deliver_at": tomorrow()}


def tomorrow() -> datetime:
    return datetime.now(UTC) + DAY


@pytest.fixture
def half(keeper: Keeper, orders: str, delay: dict[str, Any]) -> Iterator[BeginTransaction]:
    """A half message that was begun before the maximum was lowered to an hour."""
    before = settings.MAX_TIMER_DELAY_SECONDS
    half = BeginTransaction(
        producer_group=characters.name("payments"), topic=orders, body="order", transaction_id=uuid.uuid4(), **delay
    )
    keeper.do(writer.run(Begin(half)))
    settings.MAX_TIMER_DELAY_SECONDS = 3600
    yield half
    settings.MAX_TIMER_DELAY_SECONDS = before


def test_a_half_message_is_committed_by_its_producer(keeper: Keeper, half: BeginTransaction) -> None:
    assert half.transaction_id is not None
    end = EndTransaction(producer_group=half.producer_group, state="COMMIT")

    assert keeper.do(writer.run(End.of_producer(half.transaction_id, end))).state == "COMMITTED"

    assert keeper.sql("SELECT count(*) FROM timer WHERE due_at > now() + interval '23 hours'") == [(1,)]


def test_a_half_message_is_committed_by_its_check(keeper: Keeper, half: BeginTransaction) -> None:
    assert half.transaction_id is not None
    attempt = Attempt(
        transaction_id=half.transaction_id,
        endpoint_id=None,
        endpoint_url=None,
        counted=True,
        answer="COMMIT",
        status=200,
        latency_ms=1,
        reason=None,
        wait_seconds=30,
    )

    keeper.do(outcomes.apply(attempt))

    assert keeper.sql("SELECT count(*) FROM timer WHERE due_at > now() + interval '23 hours'") == [(1,)]


def test_a_begin_is_answered_again_and_a_new_one_refused(keeper: Keeper, half: BeginTransaction) -> None:
    assert keeper.do(writer.run(Begin(half))).duplicate is True

    half.transaction_id = uuid.uuid4()
    with pytest.raises(DelayIllegal):
        keeper.do(writer.run(Begin(half)))
