"""The ends of connections: by time, by what a caller takes of its answers, by their number, by the process itself."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mqbroker.wire.connection import IDLE_SECONDS
from mqbroker.wire.taking import UNREAD_BYTES, UNREAD_SECONDS
from tests.broker.polling import PAUSE_SECONDS
from tests.http.servers import MOST_CONNECTIONS, POST, Caller, Served, serving, until, until_taken


@pytest.mark.parametrize("sent", ["", "POST /ord", POST + "X-More:", POST + "Content-Length: 0\n\n"])
async def test_a_connection_without_a_whole_head_is_closed_after_a_while(
    served: Served, caller: Caller, sent: str
) -> None:
    loop = asyncio.get_running_loop()
    caller.send(sent)
    await until_taken(served, int(sent.endswith("\n\n")))
    await until(lambda: served.connections.count > 0)

    served.connections.tick(loop.time() + IDLE_SECONDS - 5)
    was_open = served.connections.count
    served.connections.tick(loop.time() + IDLE_SECONDS + 5)

    await caller.rest()
    assert was_open == 1


async def test_a_blocked_request_is_not_idle(served: Served, caller: Caller) -> None:
    caller.send("GET /wait HTTP/1.1\nHost: broker\n\n")
    await until_taken(served, 1)

    served.connections.tick(asyncio.get_running_loop().time() + 10 * IDLE_SECONDS)

    assert served.connections.count == 1


async def ticks_until(served: Served, holds: Callable[[], bool], between: Callable[[], Awaitable[object]]) -> int:
    """Ticks each half of the time in which a caller has to take something, until it holds; how often."""
    now = asyncio.get_running_loop().time()
    for number in range(1, 60):
        await between()
        served.connections.tick(now + number * UNREAD_SECONDS / 2)
        await asyncio.sleep(PAUSE_SECONDS)
        if holds():
            return number
    raise AssertionError("it never came to hold")


@pytest.mark.parametrize("taken", [0, 1, 1000])
async def test_a_caller_that_reads_nothing_or_very_slowly_is_given_up(
    served: Served, caller: Caller, taken: int
) -> None:
    caller.send("GET /large HTTP/1.1\nHost: broker\n\n")
    await until_taken(served, 1)

    # What the sockets on the way hold is taken first.
    await ticks_until(served, lambda: served.connections.count == 0, lambda: caller.reader.read(taken))


async def test_a_caller_that_reads_steadily_is_not_given_up_however_long_it_takes(
    served: Served, caller: Caller
) -> None:
    """At 40 kB/s it would have been cut after 20 s, with one part of an answer that is larger than what is kept."""
    caller.send("GET /large HTTP/1.1\nHost: broker\n\n")
    await until_taken(served, 1)

    def is_read_on() -> bool:
        assert served.connections.count == 1
        return False

    with pytest.raises(AssertionError, match="never"):
        await ticks_until(served, is_read_on, lambda: caller.reader.readexactly(2 * UNREAD_BYTES))


async def test_a_process_that_ends_answers_what_is_blocked(served: Served, caller: Caller) -> None:
    idle = await served.caller()
    caller.send("GET /wait HTTP/1.1\nHost: broker\n\n")
    await until_taken(served, 1)

    ending = asyncio.create_task(served.connections.close(10))

    status, headers, content = await caller.answer()
    assert (status, headers["connection"], content) == (200, "close", b"waited")
    assert await idle.rest() == b""
    async with asyncio.timeout(5):
        await ending


async def test_a_connection_that_was_opened_just_before_the_end_has_its_first_request_answered(
    served: Served, caller: Caller
) -> None:
    await until(lambda: served.connections.count == 1)
    ending = asyncio.create_task(served.connections.close(10))
    await asyncio.sleep(0)

    assert (await caller.ask(POST + "\n"))[0] == 200
    assert await caller.rest() == b""
    await ending


async def test_a_body_that_is_under_way_as_the_process_ends_may_come_to_its_end(served: Served, caller: Caller) -> None:
    caller.send(POST + "Content-Length: 2\n\na")
    await until_taken(served, 1)
    ending = asyncio.create_task(served.connections.close(10))
    await asyncio.sleep(0)

    assert (await caller.ask("b"))[2] == b"POST ab"
    await ending


async def test_there_is_an_end_to_the_connections_that_are_accepted(served: Served) -> None:
    callers = [await served.caller() for _ in range(MOST_CONNECTIONS)]
    assert [(await one.ask(POST + "\n"))[0] for one in callers] == [200] * MOST_CONNECTIONS

    one_more = await served.caller()

    assert await one_more.rest() == b""
    assert (await callers[0].ask(POST + "\n"))[0] == 200


async def test_there_is_an_end_to_the_connections_of_one_address() -> None:
    """A stranger that opens all it can leaves room for others."""
    most = 4
    async with serving(most_per_address=most, proxies=()) as served:
        callers = [await served.caller() for _ in range(most)]
        assert [(await one.ask(POST + "\n"))[0] for one in callers] == [200] * most

        assert await (await served.caller()).rest() == b""
        assert (await (await served.caller("127.0.0.2")).ask(POST + "\n"))[0] == 200
        callers[0].writer.close()
        await until(lambda: served.connections.count == most)
        assert (await (await served.caller()).ask(POST + "\n"))[0] == 200


async def test_one_address_has_three_quarters_of_all_connections_whatever_is_set() -> None:
    async with serving(most_connections=8, most_per_address=1000, proxies=()) as served:
        callers = [await served.caller() for _ in range(6)]
        assert [(await one.ask(POST + "\n"))[0] for one in callers] == [200] * 6

        assert await (await served.caller()).rest() == b""


async def test_connections_of_a_trusted_proxy_are_not_counted() -> None:
    async with serving(most_per_address=1, proxies=("127.0.0.1/32",)) as served:
        callers = [await served.caller() for _ in range(MOST_CONNECTIONS)]

        assert [(await one.ask(POST + "\n"))[0] for one in callers] == [200] * MOST_CONNECTIONS


async def test_requests_behind_one_that_is_served_take_no_more_than_their_room() -> None:
    """256 kB of the shortest requests, which a socket may have at one time, take 10 MB."""
    request = "GET /orders HTTP/1.1\nHost: b\n\n"
    many, most = 256_000 // len(request), 100
    async with serving(most_connections=most) as served:
        callers = [await served.caller() for _ in range(60)]
        for caller in callers:
            caller.send("GET /wait HTTP/1.1\nHost: b\n\n" + request * many)
        await until_taken(served, len(callers))
        await until(lambda: served.connections.is_short)

        # Others are served meanwhile, and the room is there again once those have ended.
        assert (await (await served.caller()).ask(POST + "\n"))[0] == 200
        await served.connections.close(0.5)
        await until(lambda: served.connections.count == 0)
        assert not served.connections.is_short
