"""Polls for checks that wait together share their look-ups: they cost the senders nothing that grows with them."""

import asyncio
import uuid

from store.commit.writer import Writers
from store.db.connections import Reads
from store.process import runtime
from store.process.answer_budget import Hold
from tests.broker.polling import eventually
from tests.store.keeper import Keeper

POLLS = 60
WAIT_SECONDS = 3
FOUND = "SELECT xact_commit AS count FROM pg_stat_database WHERE datname = current_database()"


def transactions_of(keeper: Keeper) -> int:
    """The transactions of the process's own connections, which tell their counts at their end."""
    keeper.do(runtime.current().close((Writers, Reads)))
    runtime.install(runtime.Runtime())
    sessions = (
        "SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    eventually(lambda: keeper.sql(sessions)[0].count == 0)
    return int(keeper.sql(FOUND)[0].count)


def test_polls_that_wait_together_look_up_the_next_check_once_for_all(keeper: Keeper) -> None:
    from transactions import groups
    from transactions.checks import polling
    from transactions.checks.polling import ReceiveChecks

    group = f"payments-{uuid.uuid4().hex[:8]}"

    async def poll() -> None:
        await groups.for_producing(group)
        request = ReceiveChecks(wait_seconds=WAIT_SECONDS)
        handed_out = await asyncio.gather(*(polling.receive(group, request, Hold()) for _ in range(POLLS)))
        assert [received.documents for received in handed_out] == [{}] * POLLS

    before = transactions_of(keeper)

    keeper.do(poll())

    # Were each of them to look up by itself, there would be more than four of each poll.
    assert transactions_of(keeper) - before < 2.5 * POLLS
