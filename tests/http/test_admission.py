"""Admission: a crowd of new work begins in turns, what is no new work does not wait for it, and too much is refused."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mqbroker.http.admission import PER_TURN
from mqbroker.http.exchange import Exchange
from tests.http.servers import Caller, Page, Served, serving

CROWD = 3 * PER_TURN


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(most_connections=CROWD + 1) as served:
        yield served


def new(number: int) -> str:
    """A request that is new work."""
    return f"POST /new/{number} HTTP/1.1\nHost: broker\nContent-Length: 2\n\nab"


async def crowd(served: Served) -> list[Caller]:
    """Callers that have each sent new work, in their order, before the server reads any of it."""
    callers = [await served.caller() for _ in range(CROWD)]
    for number, caller in enumerate(callers):
        caller.send(new(number))
    return callers


class Counting(Page):
    """Counts what begins in each turn of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = [0]

    async def __call__(self, exchange: Exchange) -> None:
        self.turns[-1] += 1
        await super().__call__(exchange)

    async def count(self) -> None:
        """Counts until it is cancelled."""
        while True:
            await asyncio.sleep(0)
            self.turns.append(0)


async def test_a_crowd_of_new_work_begins_in_turns() -> None:
    page = Counting()
    async with serving(page, most_connections=CROWD) as served:
        callers = await crowd(served)
        counting = asyncio.create_task(page.count())
        answers = [await caller.answer() for caller in callers]
        counting.cancel()

    assert {status for status, _, _ in answers} == {200}
    assert max(page.turns) <= PER_TURN


async def test_what_is_no_new_work_does_not_wait_behind_a_crowd(served: Served) -> None:
    last = await served.caller()
    callers = await crowd(served)

    await last.ask("GET /read HTTP/1.1\nHost: broker\n\n")

    for caller in callers:
        await caller.answer()
    assert served.page.taken.index("/read") < CROWD - PER_TURN
    begun = [int(path.rpartition("/")[2]) for path in served.page.taken if path != "/read"]
    assert sorted(begun) == list(range(CROWD))


async def test_new_work_is_refused_while_the_first_has_waited_too_long_and_its_caller_may_go_on(served: Served) -> None:
    served.page.most_seconds = 0.0
    caller = await served.caller()

    refused = await caller.ask(new(1))
    read = await caller.ask("GET /read HTTP/1.1\nHost: broker\n\n")
    served.page.most_seconds = 0.1
    taken = await caller.ask(new(2))

    assert [refused[0], read[0], taken[0]] == [503, 200, 200]
    assert served.page.taken == ["/read", "/new/2"]


async def test_a_process_that_ends_answers_the_new_work_that_waits(served: Served) -> None:
    callers = await crowd(served)
    await served.page.begun.wait()

    await served.connections.close(10)

    assert {(await caller.answer())[0] for caller in callers} == {200}
