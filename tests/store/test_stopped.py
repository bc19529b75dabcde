"""A process that is stopped under load keeps no other process from sending."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from store.commit import stalled
from tests.broker import databases
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.store.keeper import Keeper, sent

pytestmark = pytest.mark.chaos
ROUNDS = 8
END_THOSE_THAT_WAIT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'mqbroker-writer' AND wait_event_type = 'Lock'"
)
STOPPED_SECONDS = 1.5
# Between two sends of the process that is not stopped.
PACE_SECONDS = 0.01
HELD = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s::oid AND objsubid = 2"


def test_a_stopped_process_does_not_stop_the_sends_of_another(keeper: Keeper) -> None:
    async def sending() -> float:
        """The longest of the sends of one round, in seconds."""
        deadline, longest = time.monotonic() + STOPPED_SECONDS, 0.0
        while time.monotonic() < deadline:
            began = time.monotonic()
            await asyncio.gather(*(sent("orders", "ours", queue_id=number) for number in range(4)))
            longest = max(longest, time.monotonic() - began)
            await asyncio.sleep(PACE_SECONDS)
        return longest

    for number in range(4):
        keeper.send("orders", "first", queue_id=number)
    other = keeper.start("tests.store.writer", "orders", "theirs")
    try:
        wait_for_sends(keeper)
        stalls = []
        for number in range(ROUNDS):
            os.kill(other.pid, signal.SIGSTOP)
            stalls.append(keeper.do(sending()))
            os.kill(other.pid, signal.SIGCONT)
            # Another moment of its work each time.
            time.sleep(0.05 + number / 97)
            assert other.poll() is None
    finally:
        other.kill()
        other.communicate()

    assert max(stalls) < at_this_load(1)


def test_a_process_that_stops_within_a_stepwise_write_does_not_stop_the_sends_of_another(keeper: Keeper) -> None:
    keeper.send("payments", "first", queue_id=0)
    other = keeper.start("tests.store.stopping", "payments")
    try:
        _, status = os.waitpid(other.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "it stops before its commit, while it holds the lock of the queue"
        began = time.monotonic()
        ours = keeper.send("payments", "ours", queue_id=0)
        seconds = time.monotonic() - began
        os.kill(other.pid, signal.SIGCONT)
        printed, _ = other.communicate(timeout=300)
    finally:
        other.kill()
        other.wait()

    assert seconds < at_this_load(1)
    assert (ours["queue_offset"], printed) == (1, "2\n"), "what it wrote was rolled back, and written again"


@pytest.mark.parametrize("ends", ["by the server", "without a word"])
def test_a_stepwise_write_whose_session_ends_before_its_commit_is_written_once(prepared: str, ends: str) -> None:
    begun: list[str] = []

    async def written() -> Any:
        from access.audit import Signature
        from scheduling.sending.send import Send
        from store.commit import writer
        from store.messages import Message

        entry = Signature("command", "a test").note("topic.put", "invoices")

        def end(batch: Any, operation: Any) -> None:
            # A statement behind it, before the commit.
            entry(batch, operation)
            begun.append("attempt")
            if len(begun) == 1 and ends == "by the server":
                # As a process that has no processor for long.
                time.sleep(2)
            elif len(begun) == 1:
                proxy.cut()

        return (await writer.run(Send(Message(topic="invoices", body="ours", queue_id=0)), end))[0]

    with databases.copied(prepared) as database_url, DatabaseProxy(database_url) as proxy, Keeper(proxy.url) as keeper:
        keeper.send("invoices", "first", queue_id=0)
        assert keeper.do(written()).queue_offset == 1
        assert [bytes(entry.body) for entry in keeper.read("invoices")] == [b"first", b"ours"]
    assert len(begun) == 2


def test_a_transaction_whose_end_does_not_come_is_ended_by_the_poller(keeper: Keeper) -> None:
    keeper.send("refunds", "first", queue_id=0)
    with half_sent(keeper, "refunds"):
        keeper.do(stalled.end(seconds=60))
        is_held = bool(held(keeper, "refunds"))
        keeper.do(stalled.end(seconds=0))
        eventually(lambda: not held(keeper, "refunds"))

    assert is_held, "a transaction that has not taken that long goes on"


@pytest.mark.parametrize("body", ["pipelined", "stepwise" * 150_000], ids=["pipelined", "stepwise"])
def test_a_transaction_whose_end_does_not_come_is_ended_when_a_send_meets_its_lock(keeper: Keeper, body: str) -> None:
    keeper.send("refunds", "first", queue_id=0)
    with half_sent(keeper, "refunds"):
        began = time.monotonic()
        ours = keeper.send("refunds", body, queue_id=0)
        seconds = time.monotonic() - began

    assert ours["queue_offset"] == 1
    assert seconds < at_this_load(1)


def test_a_transaction_whose_parts_still_come_is_not_ended_when_a_send_meets_its_lock(keeper: Keeper) -> None:
    keeper.send("refunds", "first", queue_id=0)
    with half_sent(keeper, "refunds") as slow, ThreadPoolExecutor(1) as pool:
        ours = pool.submit(keeper.send, "refunds", "ours", queue_id=0)
        for _ in range(20):
            send_part(slow, b"SELECT 1")
            time.sleep(stalled.LOOK_SECONDS)
        waits = not ours.done()
        slow.pgconn.pipeline_sync()
        slow.pgconn.flush()
        stored = ours.result(timeout=120)

    assert waits, "a transaction that goes on keeps its lock"
    assert stored["queue_offset"] == 1


def test_a_batch_whose_session_is_ended_before_its_commit_is_written_by_another(keeper: Keeper) -> None:
    keeper.send("refunds", "first", queue_id=0)
    offsets: list[int] = []

    def is_ended_as_it_waits() -> bool:
        with half_sent(keeper, "refunds"), ThreadPoolExecutor(1) as pool:
            ours = pool.submit(keeper.send, "refunds", "ours", queue_id=0)
            while not (ended := keeper.sql(END_THOSE_THAT_WAIT)) and not ours.done():
                time.sleep(0.01)  # between two looks
        offsets.append(ours.result(timeout=120)["queue_offset"])
        return bool(ended)

    # It waits for half a second: a busy machine may look too late.
    assert any(is_ended_as_it_waits() for _ in range(5))
    assert offsets == list(range(1, len(offsets) + 1))


@contextlib.contextmanager
def half_sent(keeper: Keeper, topic: str) -> Iterator[psycopg.Connection[Any]]:
    """A writer that has locked the topic's first queue and is stopped between two parts of what it sends, on a server
    without `transaction_timeout`."""
    [row] = keeper.sql("SELECT id FROM topic WHERE name = %s", topic)
    session = psycopg.connect(keeper.url, application_name="mqbroker-writer")
    try:
        session.pgconn.enter_pipeline_mode()
        send_part(session, b"SELECT pg_advisory_xact_lock(%d, 0)" % row.id)
        eventually(lambda: held(keeper, topic))
        yield session
    finally:
        session.pgconn.finish()


def send_part(session: psycopg.Connection[Any], statement: bytes) -> None:
    """Sends the next part of a transaction, which the server takes at once."""
    session.pgconn.send_query_params(statement, None)
    session.pgconn.send_flush_request()
    session.pgconn.flush()


def held(keeper: Keeper, topic: str) -> list[Any]:
    """The sessions that hold locks of the topic's queues."""
    [row] = keeper.sql("SELECT id FROM topic WHERE name = %s", topic)
    return keeper.sql(HELD, row.id)


def wait_for_sends(keeper: Keeper) -> None:
    """Until the other process sends."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if keeper.sql("SELECT count(*) AS stored FROM commit_log")[0].stored > 200:
            return
        time.sleep(0.1)
    raise subprocess.TimeoutExpired("the writer", 30)
