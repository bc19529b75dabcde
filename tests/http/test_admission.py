"""Admission: a crowd of new work begins in turns, what is no new work does not wait for it, and too much is refused."""

import asyncio
import contextlib
import itertools
import select
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from mqbroker.wire.admission import BEGUN_PER_TURN, REFUSED_PER_TURN
from mqbroker.wire.exchange import Exchange
from tests.broker.polling import STILL_SECONDS
from tests.http.servers import Caller, Page, Served, serving

CROWD = 3 * BEGUN_PER_TURN
# Requests that a caller sends before it reads an answer.
TOGETHER = 16
# A request is answered after so many turns of the event loop.
TURNS = 5


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(most_connections=CROWD + 1) as served:
        yield served


def new(number: int) -> str:
    """A request that is new work."""
    return f"POST /new/{number} HTTP/1.1\nHost: broker\nContent-Length: 2\n\nab"


WHOLE = new(1)


async def crowd(served: Served) -> list[Caller]:
    """Callers that have each sent new work, in their order, before the server reads any of it."""
    callers = [await served.caller() for _ in range(CROWD)]
    for number, caller in enumerate(callers):
        caller.send(new(number))
    return callers


async def until(is_so: Callable[[], bool]) -> None:
    """Returns in the turn of the event loop in which it is so."""
    async with asyncio.timeout(STILL_SECONDS):
        while not is_so():  # noqa: ASYNC110  # the server has no event for it
            await asyncio.sleep(0)


class Counting(Page):
    """Counts what begins and what is refused in each turn of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.turns, self.refusals = [0], [0]

    async def __call__(self, exchange: Exchange) -> None:
        self.turns[-1] += 1
        await super().__call__(exchange)

    def refuse(self, exchange: Exchange) -> None:
        self.refusals[-1] += 1
        super().refuse(exchange)

    async def count(self) -> None:
        """Counts until it is cancelled."""
        while True:
            await asyncio.sleep(0)
            self.turns.append(0)
            self.refusals.append(0)


class Slow(Page):
    """Answers after some turns of the event loop; knows how many requests were under way together at most."""

    together = 0

    async def __call__(self, exchange: Exchange) -> None:
        self.under_way += 1
        self.together = max(self.together, self.under_way)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self.under_way -= 1
        await super().__call__(exchange)


async def test_a_crowd_of_new_work_begins_in_turns() -> None:
    page = Counting()
    async with serving(page, most_connections=CROWD) as served:
        callers = await crowd(served)
        counting = asyncio.create_task(page.count())
        answers = [await caller.answer() for caller in callers]
        counting.cancel()

    assert {status for status, _, _ in answers} == {200}
    assert max(page.turns) <= BEGUN_PER_TURN


async def test_new_work_waits_until_there_is_room_for_it() -> None:
    page = Slow()
    page.most = 1
    async with serving(page, most_connections=CROWD) as served:
        callers = await crowd(served)
        answers = [await caller.answer() for caller in callers]

    assert {status for status, _, _ in answers} == {200}
    # What begins in one turn is under way in the next one, when further work may have begun.
    assert page.together <= 2 * BEGUN_PER_TURN
    assert sorted(page.taken) == sorted(f"/new/{number}" for number in range(CROWD))


async def test_what_is_no_new_work_needs_no_room(served: Served) -> None:
    served.page.most = 0
    caller = await served.caller()
    caller.send(new(1))

    read = await (await served.caller()).ask("GET /read HTTP/1.1\nHost: broker\n\n")
    served.page.most = 1
    # An answer has new work look for room again.
    await (await served.caller()).ask("GET /read HTTP/1.1\nHost: broker\n\n")

    assert (read[0], (await caller.answer())[0]) == (200, 200)


async def test_a_turn_refuses_half_as_much_as_it_begins_and_a_few_at_least() -> None:
    page = Counting()
    page.most_seconds = 0.0
    async with serving(page, most_connections=2 * CROWD) as served:
        counting = asyncio.create_task(page.count())
        reading = [await served.caller() for _ in range(CROWD)]
        refused = [await served.caller() for _ in range(CROWD)]
        for one, other in zip(reading, refused, strict=True):
            one.send("GET /read HTTP/1.1\nHost: broker\n\n" * TOGETHER)
            other.send(new(1) * TOGETHER)
        answers = [await caller.answer() for caller in refused for _ in range(TOGETHER)]
        counting.cancel()

    assert {status for status, _, _ in answers} == {503}
    # What begins in one turn is counted in the next one, and one of the counting may see two of the server.
    begun = [sum(page.turns[max(turn - 1, 0) : turn + 2]) for turn in range(len(page.turns))]
    assert all(found <= max(near // 2, 2 * REFUSED_PER_TURN) for found, near in zip(page.refusals, begun, strict=True))
    assert max(page.refusals) > 2 * REFUSED_PER_TURN


async def test_refusals_without_an_exchange_leave_in_turns_too() -> None:
    page = Page()
    page.most_seconds = 0.0
    crowd = 3 * REFUSED_PER_TURN
    async with serving(page, most_connections=crowd) as served:
        with contextlib.ExitStack() as stack:
            callers = [stack.enter_context(socket.create_connection(("127.0.0.1", served.port))) for _ in range(crowd)]
            await until(lambda: served.connections.count == crowd)
            for caller in callers:
                caller.sendall(WHOLE.replace("\n", "\r\n").encode())
            answered = [0]
            async with asyncio.timeout(STILL_SECONDS):
                while answered[-1] < crowd:
                    await asyncio.sleep(0)
                    answered.append(len(select.select(callers, [], [], 0)[0]))

    assert page.refused_at_once == crowd
    assert max(later - earlier for earlier, later in itertools.pairwise(answered)) <= REFUSED_PER_TURN


async def test_what_a_caller_sends_while_its_refusal_waits_is_answered_behind_it() -> None:
    page = Page()
    page.most_seconds = 0.0
    async with serving(page, most_connections=CROWD) as served:
        callers = [await served.caller() for _ in range(CROWD)]
        await until(lambda: served.connections.count == len(callers))
        for caller in callers:
            caller.send(WHOLE)
        await until(lambda: page.refused_at_once == CROWD)
        for caller in callers:
            caller.send("GET /read HTTP/1.1\nHost: broker\n\n")
        answers = [[(await caller.answer())[0] for _ in range(2)] for caller in callers]

    assert answers == [[503, 200]] * len(callers)


async def test_a_process_that_ends_answers_the_crowd_that_it_refuses() -> None:
    page = Page()
    page.most_seconds = 0.0
    async with serving(page, most_connections=CROWD) as served:
        callers = [await served.caller() for _ in range(CROWD)]
        await until(lambda: served.connections.count == CROWD)
        for caller in callers:
            caller.send(WHOLE)
        await until(lambda: page.refused_at_once == CROWD)
        await served.connections.close(10)

        answers = [await caller.rest() for caller in callers]

    assert [answer for answer in answers if b"503" not in answer] == []


async def test_what_is_no_new_work_does_not_wait_behind_a_crowd(served: Served) -> None:
    last = await served.caller()
    callers = await crowd(served)

    await last.ask("GET /read HTTP/1.1\nHost: broker\n\n")

    for caller in callers:
        await caller.answer()
    assert served.page.taken.index("/read") < CROWD - BEGUN_PER_TURN
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


@pytest.mark.parametrize(
    ("text", "count", "at_once"),
    [
        (WHOLE, 1, 1),
        (WHOLE.replace("Content-Length: 2\n\nab", "Transfer-Encoding: chunked\n\n2\nab\n0\n\n"), 1, 1),
        (WHOLE * 2, 2, 0),
        (WHOLE.replace("Host", "X-Request-Id: mine\nHost"), 1, 0),
        (WHOLE.replace("Host", "Connection: close\nHost"), 1, 0),
        (WHOLE.replace("POST", "PUT"), 1, 0),
        (WHOLE.replace("Content-Length: 2", "Content-Length: 3") + "c", 1, 1),
    ],
    ids=["whole", "in chunks", "two", "with an id", "the last one", "another method", "longer"],
)
async def test_new_work_is_refused_without_an_exchange_where_it_comes_whole_and_by_itself(
    served: Served, text: str, count: int, at_once: int
) -> None:
    served.page.most_seconds = 0.0
    caller = await served.caller()

    caller.send(text)
    answers = [await caller.answer() for _ in range(count)]

    assert [(status, content) for status, _, content in answers] == [(503, b"too much")] * count
    assert served.page.refused_at_once == at_once
    if "close" in text:
        assert (answers[0][1]["connection"], await caller.rest()) == ("close", b"")
    else:
        assert (await caller.ask("GET /read HTTP/1.1\nHost: broker\n\n"))[0] == 200


async def test_new_work_that_comes_in_two_pieces_is_refused_when_it_is_whole(
    served: Served,
) -> None:
    served.page.most_seconds = 0.0
    caller, broken = await served.caller(), await served.caller()

    caller.send(WHOLE[:-1])
    assert (await broken.ask(WHOLE.replace("Content-Length: 2", "Content-Length: two")))[0] == 400
    caller.send(WHOLE[-1:])

    assert ((await caller.answer())[0], served.page.refused_at_once) == (503, 0)


async def test_a_process_that_ends_answers_the_new_work_that_waits(served: Served) -> None:
    callers = await crowd(served)
    await served.page.begun.wait()

    await served.connections.close(10)

    assert {(await caller.answer())[0] for caller in callers} == {200}
