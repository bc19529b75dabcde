"""A process that is stopped under load keeps no other process from sending."""

import asyncio
import os
import signal
import subprocess
import time

import psycopg
import pytest

from store.commit import stalled
from tests.broker.polling import at_this_load, eventually
from tests.store.keeper import Keeper, sent

pytestmark = pytest.mark.chaos
ROUNDS = 8
STOPPED_SECONDS = 1.5
HELD = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s::oid AND objsubid = 2"


def test_a_stopped_process_does_not_stop_the_sends_of_another(keeper: Keeper) -> None:
    async def sending() -> float:
        """The longest of the sends of one round, in seconds."""
        deadline, longest = time.monotonic() + STOPPED_SECONDS, 0.0
        while time.monotonic() < deadline:
            began = time.monotonic()
            await asyncio.gather(*(sent("orders", "ours", queue_id=number) for number in range(4)))
            longest = max(longest, time.monotonic() - began)
        return longest

    for number in range(4):
        keeper.send("orders", "first", queue_id=number)
    other = keeper.start("tests.store.writer", "orders", "theirs", "400000")
    try:
        wait_for_sends(keeper)
        stalls = []
        for number in range(ROUNDS):
            os.kill(other.pid, signal.SIGSTOP)
            stalls.append(keeper.do(sending()))
            os.kill(other.pid, signal.SIGCONT)
            # Another moment of its work each time.
            time.sleep(0.05 + number / 97)
            assert other.poll() is None, "it sent everything: give it more"
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
        printed, _ = other.communicate(timeout=30)
    finally:
        other.kill()
        other.wait()

    assert seconds < at_this_load(1)
    assert (ours["queue_offset"], printed) == (1, "2\n"), "what it wrote was rolled back, and written again"


def test_a_transaction_whose_end_does_not_come_is_ended_and_the_next_send_goes_on(keeper: Keeper) -> None:
    keeper.send("refunds", "first", queue_id=0)
    [topic] = keeper.sql("SELECT id FROM topic WHERE name = 'refunds'")
    # As a writer that is stopped between two parts of what it sends, on a server without `transaction_timeout`.
    half_sent = psycopg.connect(keeper.url, application_name="mqbroker-writer")
    half_sent.pgconn.enter_pipeline_mode()
    half_sent.pgconn.send_query_params(b"SELECT pg_advisory_xact_lock(%d, 0)" % topic.id, None)
    half_sent.pgconn.send_flush_request()
    half_sent.pgconn.flush()
    eventually(lambda: keeper.sql(HELD, topic.id))

    keeper.do(stalled.end(seconds=60))
    is_held = bool(keeper.sql(HELD, topic.id))
    keeper.do(stalled.end(seconds=0))
    eventually(lambda: not keeper.sql(HELD, topic.id))
    sent_next = keeper.send("refunds", "next", queue_id=0)
    half_sent.pgconn.finish()

    assert is_held, "a transaction that has not taken that long goes on"
    assert sent_next["queue_offset"] == 1


def wait_for_sends(keeper: Keeper) -> None:
    """Until the other process sends."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if keeper.sql("SELECT count(*) AS stored FROM commit_log")[0].stored > 200:
            return
        time.sleep(0.1)
    raise subprocess.TimeoutExpired("the writer", 30)
