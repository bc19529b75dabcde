"""A receive holds no lock while its process does anything else, and waits for none of another session for long."""

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from store.errors import SystemBusy
from store.reading.progress import topic_lock
from tests.broker.polling import at_this_load, eventually
from tests.store.keeper import Keeper, sent

ROUNDS = 60
# A page of them is more than what the sockets between a process and its database hold.
BODY = "x" * (256 * 1024)


@pytest.mark.chaos
@pytest.mark.parametrize("wish", [None, "heavy"], ids=["all", "filtered"])
def test_a_process_that_stops_while_it_receives_large_bodies_stops_no_receive_of_its_group(
    keeper: Keeper, wish: str | None
) -> None:
    async def fill() -> None:
        await asyncio.gather(*(sent("orders", BODY, tags="heavy") for _ in range(48)))

    keeper.do(fill())
    assert len(eventually(lambda: taken(keeper, "readers", "orders", filter=wish))) == 32
    other = keeper.start("tests.store.receiver", "orders", "readers", *([wish] if wish else []))
    stalls = []
    try:
        eventually(lambda: keeper.sql("SELECT count(*) AS moves FROM progress")[0].moves > 20)
        for number in range(ROUNDS):
            os.kill(other.pid, signal.SIGSTOP)
            began = time.monotonic()
            eventually(lambda: taken(keeper, "readers", "orders", max_messages=1, filter=wish) is not None)
            stalls.append(time.monotonic() - began)
            os.kill(other.pid, signal.SIGCONT)
            # Another moment of its work each time.
            time.sleep(0.02 + number / 997)
            assert other.poll() is None, "it goes on when it is continued"
    finally:
        other.kill()
        other.communicate()

    assert max(stalls) < at_this_load(1)


def test_a_group_whose_progress_is_locked_elsewhere_holds_up_no_receive_of_another(keeper: Keeper) -> None:
    from delivery.receive import receives
    from delivery.receive.receives import Receive

    keeper.send("orders", "first")
    ids = {group: group_id(keeper, group) for group in ("locked", "free")}
    topic_id = keeper.sql("SELECT id FROM topic WHERE name = 'orders'")[0].id

    async def both() -> tuple[float, list[str]]:
        """How long the group that is free waits, in seconds, and what the locked one receives after the lock."""
        wish = Receive(topic="orders", max_messages=1)
        locked = asyncio.ensure_future(receives.receive("locked", wish))
        began = time.monotonic()
        [_] = await receives.receive("free", wish)
        seconds = time.monotonic() - began
        session.rollback()
        return seconds, [str(one.message.body) for one in await locked]

    with keeper.session() as session:
        session.execute("SELECT pg_advisory_xact_lock(%s)", (topic_lock(ids["locked"], topic_id),))
        seconds, bodies = keeper.do(both())

    assert (bodies, seconds < at_this_load(1)) == (["first"], True)


def test_a_group_that_another_session_changes_is_read_once_that_is_done(keeper: Keeper) -> None:
    keeper.send("orders", "first")
    changed = group_id(keeper, "readers")

    async def receive_meanwhile() -> list[str]:
        from delivery.receive import receives
        from delivery.receive.receives import Receive

        received = asyncio.ensure_future(receives.receive("readers", Receive(topic="orders")))
        await asyncio.to_thread(eventually, lambda: waits_for_row(keeper))
        session.rollback()
        return [str(one.message.body) for one in await received]

    with keeper.session() as session:
        session.execute("SELECT id FROM consumer_group WHERE id = %s FOR UPDATE", (changed,))
        bodies = keeper.do(receive_meanwhile())

    assert bodies == ["first"]


def taken(keeper: Keeper, group: str, topic: str, **wishes: Any) -> list[Any] | None:
    """What a receive is answered; None where its own session was taken for a stalled one, and ended."""
    try:
        return received(keeper, group, topic, **wishes)
    except SystemBusy:
        return None


def waits_for_row(keeper: Keeper) -> bool:
    """Whether a session waits for what the test has locked."""
    waiting = "SELECT count(*) AS sessions FROM pg_stat_activity WHERE wait_event = 'transactionid'"
    return bool(keeper.sql(waiting)[0].sessions)


def group_id(keeper: Keeper, group: str) -> int:
    """The id of a group that has received from another topic, and so is there."""
    received(keeper, group, "others")
    [row] = keeper.sql("SELECT id FROM consumer_group WHERE name = %s", group)
    return int(row.id)


def received(keeper: Keeper, group: str, topic: str, **wishes: Any) -> list[Any]:
    """What a receive is answered."""
    from delivery.receive import receives
    from delivery.receive.receives import Receive

    return keeper.do(receives.receive(group, Receive(topic=topic, **wishes)))
