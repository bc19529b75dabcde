"""The pipeline: each transaction is stored whole or not at all, and its caller knows which, or that it is unknown."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from store.db import arrays, pipeline
from store.db.outcomes import Failed, Lost, NotBegun, NotSent
from store.db.pipeline import Call, Pipeline
from store.db.statements import Statement
from tests.broker import databases
from tests.broker.polling import at_this_load
from tests.store.keeper import Keeper


class Written(Statement[object]):
    """A statement of the test's own."""

    __slots__ = ()

    def __init__(self, name: str, text: str, *parameters: str) -> None:
        self.name, self.text, self.row = name, text, object
        self.handle, self.numbered, self.parameters = name.encode(), text.encode(), parameters


MAKE = Written("make", "INSERT INTO topic (name, queues, permission) VALUES ($1, $2::integer, 'rw')", "name", "queues")
SLEEP = Written("sleep", "SELECT pg_sleep(5)")
BUSY_SECONDS = 0.3
BUSY = Written("busy", f"SELECT pg_sleep({BUSY_SECONDS})")
NAP = Written("nap", "SELECT pg_sleep(0.01)")
LOCK = Written("lock", "SELECT pg_advisory_xact_lock(4711)")
LARGE = Written("large", "SELECT repeat('x', 64 * 1024 * 1024)")
SWALLOW = Written("swallow", "SELECT length($1::bytea)", "bytes")


def make(name: str, queues: int = 4) -> Call:
    """A call that makes a topic."""
    return Call(MAKE, {"name": name.encode(), "queues": arrays.int4(queues)})


@pytest.fixture(scope="module")
def keeper(prepared: str) -> Iterator[Keeper]:
    """This process's broker code, on a database of its own."""
    with databases.copied(prepared) as database_url, Keeper(database_url) as keeper:
        yield keeper


def made(keeper: Keeper) -> set[str]:
    """The topics that are stored."""
    return {row.name for row in keeper.sql("SELECT name FROM topic")}


def test_a_transaction_is_stored_when_its_result_is_there(keeper: Keeper) -> None:
    async def run() -> None:
        line = await opened()
        await line.run([make("one")])
        line.close()

    keeper.do(run())

    assert "one" in made(keeper)


def test_a_failed_transaction_stores_nothing_and_the_next_one_is_not_touched(keeper: Keeper) -> None:
    async def run() -> list[object]:
        line = await opened()
        under_way = [line.run([make("two")]), line.run([Call(NAP, {}), make("two")]), line.run([make("three")])]
        found = await asyncio.gather(*under_way, return_exceptions=True)
        line.close()
        return list(found)

    good, bad, last = keeper.do(run())

    assert not isinstance(good, Exception)
    assert not isinstance(last, Exception)
    assert isinstance(bad, Failed)
    assert bad.code == "23505"
    assert {"two", "three"} <= made(keeper)


def test_a_lock_that_another_session_holds_is_waited_for_a_moment_only(keeper: Keeper) -> None:
    async def run() -> tuple[str, float]:
        line = await opened()
        await line.run([make("locked-before")])
        began = time.monotonic()
        with pytest.raises(Failed) as failed:
            await line.run([make("locked-not"), Call(LOCK, {})])
        line.close()
        return failed.value.code, time.monotonic() - began

    with keeper.session() as other:
        other.execute("SELECT pg_advisory_xact_lock(4711)")
        code, seconds = keeper.do(run())

    assert code == "55P03"
    assert 0.1 <= seconds < at_this_load(2)
    assert "locked-not" not in made(keeper)


def test_what_is_under_way_as_the_session_is_killed_is_rolled_back_or_unknown(keeper: Keeper) -> None:
    async def run() -> list[object]:
        line = await opened()
        await line.run([make("before")])
        under_way = [line.run([make("killed"), Call(SLEEP, {})]), line.run([make("behind")])]
        await asyncio.sleep(0.2)
        await asyncio.to_thread(keeper.sql, "SELECT pg_terminate_backend(%s)", line.pid)
        outcomes = await asyncio.gather(*under_way, return_exceptions=True)
        assert not line.is_open
        return [*outcomes, *await asyncio.gather(line.run([make("after")]), return_exceptions=True)]

    killed, behind, after = keeper.do(run())

    assert isinstance(killed, Failed)
    assert isinstance(behind, NotBegun)
    assert isinstance(after, NotSent)
    assert made(keeper).isdisjoint({"killed", "behind", "after"})


def test_a_transaction_that_had_not_left_is_known_not_to_be_stored(keeper: Keeper) -> None:
    async def run() -> list[object]:
        line = await opened()
        first = line.run([Call(SLEEP, {})])
        # More than the sockets hold, while the server reads nothing.
        large = line.run([make("large"), Call(SWALLOW, {"bytes": bytes(64 * 1024 * 1024)})])
        await asyncio.sleep(0.1)
        line.close()
        return list(await asyncio.gather(first, large, return_exceptions=True))

    first, large = keeper.do(run())

    assert isinstance(first, Lost)
    assert isinstance(large, NotSent)
    assert "large" not in made(keeper)


def test_what_was_not_sent_does_not_leave_when_the_connection_is_closed(keeper: Keeper) -> None:
    """libpq sends what its buffer holds before it closes a connection."""

    async def run(name: str, megabytes: int) -> object:
        line = await opened()
        # The server reads nothing for a while, and then all that the sockets hold.
        first = line.run([Call(BUSY, {})])
        late = line.run([make(name), Call(SWALLOW, {"bytes": bytes(megabytes * 1024 * 1024)})])
        time.sleep(BUSY_SECONDS * 2)  # noqa: ASYNC251  # this process stands still
        line.close()
        outcome = (await asyncio.gather(first, late, return_exceptions=True))[1]
        await asyncio.sleep(BUSY_SECONDS)
        return outcome

    # How much the sockets hold is the system's affair.
    outcomes = {f"late {megabytes}": keeper.do(run(f"late {megabytes}", megabytes)) for megabytes in range(1, 13)}

    not_sent = {name for name, outcome in outcomes.items() if isinstance(outcome, NotSent)}
    assert not_sent
    assert not_sent & made(keeper) == set()


def test_an_answer_that_this_process_cannot_read_leaves_the_outcome_unknown(keeper: Keeper) -> None:
    process = keeper.start("tests.store.exhausted", "unread")
    try:
        printed, _ = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()

    assert printed.split() == ["Lost", "Lost", "NotSent"]
    assert "unread before" in made(keeper)
    assert "unread after" not in made(keeper)


async def opened() -> Pipeline:
    """A pipeline to the keeper's database."""
    return await pipeline.open_pipeline("test")
