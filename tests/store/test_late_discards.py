"""Discards that come late: a half message that has got checks again since a worker found it is not discarded."""

import uuid

import pytest

from store.commit import writer
from tests.broker import characters
from tests.store.keeper import Keeper
from transactions import discards
from transactions.checks import requested
from transactions.operations.begin import Begin
from transactions.operations.validation import BeginTransaction
from transactions.reads import history


@pytest.fixture
def exhausted(keeper: Keeper) -> uuid.UUID:
    """The id of a transaction whose checks are used up."""
    given = BeginTransaction(producer_group=characters.name("payments"), topic=characters.name("orders"), body="paid")
    transaction_id = keeper.do(writer.run(Begin(given))).transaction_id
    keeper.sql("UPDATE half_message SET check_times = 15, exhausted = true, line = 0, next_check_at = now()")
    return transaction_id


def events(keeper: Keeper, transaction_id: uuid.UUID) -> tuple[str, list[str]]:
    """The state of a transaction, and what its history says."""
    found = keeper.do(history.of(transaction_id))
    return found.state, [event.event for event in found.history]


def test_a_transaction_that_an_operator_resumed_is_not_discarded_by_a_worker_that_found_it_before(
    keeper: Keeper, exhausted: uuid.UUID
) -> None:
    keeper.do(discards.run())
    keeper.do(discards.resume(exhausted, "the shop is back"))

    late = keeper.do(writer.run(discards.Discard([exhausted], "no decision after 15 checks")))

    assert late == 0
    assert events(keeper, exhausted) == ("PREPARED", ["prepared", "discard", "resume"])


def test_a_transaction_that_is_to_be_checked_now_is_not_discarded_by_a_worker_that_found_it_before(
    keeper: Keeper, exhausted: uuid.UUID
) -> None:
    keeper.do(requested.make_due(exhausted))

    late = keeper.do(writer.run(discards.Discard([exhausted], "no decision after 15 checks")))

    assert late == 0
    assert events(keeper, exhausted) == ("PREPARED", ["prepared"])
