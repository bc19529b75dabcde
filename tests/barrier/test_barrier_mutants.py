"""The tests of the barrier catch a barrier that is built wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from mqbroker_client import HalfMessage
from mqbroker_client.barrier import Barrier
from mqbroker_client.states import LocalTransactionState, Outcome

from tests.barrier import places, processes, test_decisions
from tests.barrier import test_barrier_accidents as accidents
from tests.barrier.conftest import Shop
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
