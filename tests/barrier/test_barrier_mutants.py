"""The tests of the barrier catch a barrier that is built wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import HalfMessage, Producer
from mqbroker_client.barrier import Barrier
from mqbroker_client.barrier.sessions import Connection, DriverSessions, OwnSession
from mqbroker_client.barrier.table import Table
from mqbroker_client.contrib.sqlalchemy import Outbox, following
from mqbroker_client.core.states import LocalTransactionState, Outcome
from sqlalchemy import Connection as SessionConnection
from sqlalchemy.orm import Session

from tests.barrier import places, processes, test_autocommit, test_decisions, test_joined_sessions
from tests.barrier import test_barrier_accidents as accidents
from tests.barrier.conftest import Shop
from tests.barrier.places import Place
from tests.broker.running import RunningBroker

# A mutant may also leave a process where the next stop is another one.
CAUGHT = (AssertionError, pytest.fail.Exception)


class SelectsOnly(Barrier):
    """Takes a missing row for a rollback."""

    def answer(self, halves: Sequence[HalfMessage]) -> list[Outcome]:
        found = self.in_own_session(lambda table: table.find([half.transaction_id for half in halves]))
        return [Outcome(found.get(half.transaction_id, LocalTransactionState.ROLLBACK)) for half in halves]


class TakesErrorsForRollback(Barrier):
    """Takes a lock that was not had in time for a rollback."""

    def answer(self, halves: Sequence[HalfMessage]) -> list[Outcome]:
        unknown, rollback = LocalTransactionState.UNKNOWN, Outcome(LocalTransactionState.ROLLBACK)
        return [rollback if outcome.state is unknown else outcome for outcome in super().answer(halves)]


class WritesAnywhere(Barrier):
    """Does not ask whether its row can be rolled back."""

    def _table_of(self, connection: Connection) -> Table:
        assert isinstance(self.sessions, DriverSessions)
        return Table(self.sessions.over(connection), self.producer_group)


class WaitsInTurn(Barrier):
    """Has the halves of a batch wait for the locks of those before them."""

    def _roll_back(self, session: OwnSession, halves: Sequence[HalfMessage], batch: Any) -> list[HalfMessage]:
        return list(halves)


class EndsWithItsSession(Outbox):
    """Takes the COMMIT of a session for that of its connection's transaction."""

    def _after_commit(self, session: Session) -> None:
        super()._after_commit(session)
        if isinstance(session.bind, SessionConnection) and not session.in_nested_transaction():
            following.prepare(session.bind)
            for ending in following._taken(session.bind):
                ending.committed()


@pytest.fixture(scope="module", params=["driver", "late driver"])
def mutable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, broker: RunningBroker
) -> Iterator[Shop]:
    folder: Path = tmp_path_factory.mktemp("mutants")
    with places.postgresql("read committed") as place:
        place.barrier.create_table()
        with processes.program(request.param, place, broker, folder) as program:
            yield Shop(request.param, place, broker, program)


@pytest.mark.parametrize("mutable", ["driver"], indirect=True)
@pytest.mark.parametrize("mutant", [SelectsOnly, TakesErrorsForRollback])
def test_a_check_that_takes_a_running_one_for_a_rollback_is_caught(mutable: Shop, mutant: type[Barrier]) -> None:
    shop = replace(mutable, place=replace(mutable.place, barrier_class=mutant))
    with shop.program.process() as process, pytest.raises(CAUGHT):
        accidents.test_a_transaction_that_runs_is_unknown_in_half_a_second_and_later_the_truth(shop, process)


@pytest.mark.parametrize("mutable", ["driver"], indirect=True)
def test_a_check_that_leaves_no_row_is_caught(mutable: Shop) -> None:
    place = replace(mutable.place, barrier_class=SelectsOnly)
    with pytest.raises(CAUGHT):
        test_decisions.test_a_transaction_that_was_rolled_back_by_a_check_cannot_commit_at_any_isolation(place)


@pytest.mark.parametrize("mutable", ["late driver"], indirect=True)
def test_a_row_that_is_written_after_the_commit_is_caught(mutable: Shop) -> None:
    with mutable.program.process() as process, pytest.raises(CAUGHT):
        accidents.test_a_kill_before_the_commit_is_answered_rollback(mutable, process)


@pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)
def test_a_row_that_is_written_in_autocommit_mode_is_caught(place: Place) -> None:
    with pytest.raises(CAUGHT):
        test_autocommit.test_a_row_is_not_written_where_it_would_commit_by_itself(
            replace(place, barrier_class=WritesAnywhere)
        )


@pytest.mark.parametrize("place", ["read committed", "mariadb"], indirect=True)
def test_a_batch_that_waits_for_each_lock_in_turn_is_caught(place: Place) -> None:
    with pytest.raises(CAUGHT):
        test_decisions.test_halves_that_run_keep_no_other_of_their_batch_waiting(
            replace(place, barrier_class=WaitsInTurn)
        )


@pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)
@pytest.mark.parametrize("join", test_joined_sessions.JOINS)
def test_a_message_that_goes_with_a_joined_sessions_commit_is_caught(
    place: Place, join: str, broker: RunningBroker
) -> None:
    shop = test_joined_sessions.shop_at(place, broker.client(), EndsWithItsSession)
    Producer(broker.client(), place.group).send(shop.topic, b"first")
    with pytest.raises(CAUGHT):
        test_joined_sessions.test_a_message_is_delivered_when_the_connections_transaction_commits(shop, broker, join)
    shop.engine.dispose()
