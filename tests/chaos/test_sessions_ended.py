"""The end of a writer's session is noticed at once, and what had not begun by then is not said to be unknown."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest
import uvloop

from mqbroker.embedded.servers import postgres
from store.db.outcomes import Failed, Lost, NotBegun, NotSent
from store.db.pipeline import Call, open_pipeline
from tests.broker import characters
from tests.broker.polling import eventually
from tests.store.keeper import Keeper, sent
from tests.store.test_pipeline import SWALLOW

ROUNDS = 10
PROMISED_SECONDS = 1.0
# More than the sockets on the way hold, while the server reads nothing.
LARGE_BYTES = 16 * 1024 * 1024
# More than one batch takes.
SENDS = 200
WRITERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mqbroker-writer'"


@pytest.fixture(scope="module")
def keeper(server: postgres.Server) -> Iterator[Keeper]:
    """This process's broker code, on a server whose processes may be stopped."""
    with Keeper(server.url) as keeper:
        yield keeper


async def outcome_of_an_unread_transaction(keeper: Keeper, size: int) -> tuple[Exception, float]:
    """Of a transaction of so many bytes whose session is ended before the server has read it, and after which time."""
    line = await open_pipeline("test")
    await line.run([Call(SWALLOW, {"bytes": b"prepared"})])
    os.kill(line.pid, signal.SIGSTOP)
    try:
        outcome = line.run([Call(SWALLOW, {"bytes": bytes(size)})])
        await asyncio.to_thread(keeper.sql, "SELECT pg_terminate_backend(%s)", line.pid)
    finally:
        os.kill(line.pid, signal.SIGCONT)
    began = time.monotonic()
    with pytest.raises((Failed, NotBegun, NotSent, Lost)) as problem:
        async with asyncio.timeout(10):
            await outcome
    line.close()
    return problem.value, time.monotonic() - began


@pytest.mark.parametrize("size", [64, LARGE_BYTES], ids=["sent", "not all sent"])
def test_the_end_of_a_session_that_has_read_nothing_is_noticed_at_once(keeper: Keeper, size: int) -> None:
    """uvloop, on which the web processes run, names a connection that was reset only once."""

    async def run() -> list[tuple[str, float]]:
        found = [await outcome_of_an_unread_transaction(keeper, size) for _ in range(ROUNDS)]
        return [(type(problem).__name__, seconds) for problem, seconds in found]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(run())

    assert all(seconds < PROMISED_SECONDS for _, seconds in found), found
    # None of them had begun.
    assert {name for name, _ in found} <= {"Failed", "NotSent"}, found


def test_a_transaction_in_whose_sending_the_end_is_met_is_known_not_to_have_begun(keeper: Keeper) -> None:
    """libpq reads the reason of the end where it cannot send any more."""

    async def run() -> list[str]:
        line = await open_pipeline("test")
        await line.run([Call(SWALLOW, {"bytes": b"prepared"})])
        os.kill(line.pid, signal.SIGSTOP)
        first = line.run([Call(SWALLOW, {"bytes": b"unread"})])
        await asyncio.to_thread(keeper.sql, "SELECT pg_terminate_backend(%s)", line.pid)
        os.kill(line.pid, signal.SIGCONT)
        # The event loop does not run before the second one is sent: it has not heard of the end.
        eventually(lambda: not psutil.pid_exists(line.pid))
        second = line.run([Call(SWALLOW, {"bytes": bytes(LARGE_BYTES)})])
        return [type(one).__name__ for one in await asyncio.gather(first, second, return_exceptions=True)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run()) == ["Failed", "NotBegun"]


def test_sends_that_the_server_had_not_begun_are_written_in_another_session(keeper: Keeper) -> None:
    """Two batches are under way as their session is ended: none of the sends has an outcome that is unknown."""
    topic = characters.name("orders")
    keeper.send(topic, "before")
    pids = [row.pid for row in keeper.sql(WRITERS)]

    async def run() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            sends = [asyncio.create_task(sent(topic, str(number))) for number in range(SENDS)]
            for pid in pids:
                await asyncio.to_thread(keeper.sql, "SELECT pg_terminate_backend(%s)", pid)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        await asyncio.gather(*sends)

    keeper.do(run())

    stored = [bytes(row.body).decode() for row in keeper.sql("SELECT body FROM commit_log")]
    assert sorted(stored) == sorted(["before", *map(str, range(SENDS))])
