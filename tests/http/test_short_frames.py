"""Short frames: a caller that sends very many of them is read in turns, and others are read in between."""

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from tests.broker.polling import STILL_SECONDS
from tests.http.servers import POST, Caller, Served, serving, until

CALLERS = 40
BYTES = 200_000
# Of the processor in one turn of the event loop, in which the callers of a test are served, too. All that they send
# takes 0.5 s and more, and one turn took 110 to 190 ms of it.
MOST_SECONDS = 0.06
CHUNKED = f"{POST}Transfer-Encoding: chunked\n\n"
# What is sent first, and then again and again.
FRAMES = {
    "chunks": (CHUNKED, "1\na\n"),
    "chunks of two bytes with extensions": (CHUNKED, "2;a=b\nab\n"),
    "chunks that are not read": (CHUNKED.replace("/orders", "/wait"), "1\na\n"),
    "chunks of a refused body": (CHUNKED.replace("/orders", "/refused"), "1\na\n"),
    "requests": ("", "GET /a HTTP/1.1\nHost: b\n\n"),
    "requests behind one that waits": ("GET /wait HTTP/1.1\nHost: b\n\n", "GET /a HTTP/1.1\nHost: b\n\n"),
    "requests with bodies in chunks": ("", POST + "Transfer-Encoding: chunked\n\n" + "1\na\n" * 40 + "0\n\n"),
    "headers": (POST, "a:b\n"),
    "trailers": (CHUNKED + "0\n", "a:b\n"),
    "empty lines": ("", "\n"),
}


@pytest.fixture(autouse=True)
def without_old_garbage() -> Iterator[None]:
    """To look through the objects of other tests takes 60 ms."""
    gc.freeze()
    yield
    gc.unfreeze()


async def longest_turn(over: asyncio.Event) -> float:
    """The seconds of the processor that one turn of the event loop took at most, until it is over."""
    longest, began = 0.0, time.thread_time()
    while not over.is_set():
        await asyncio.sleep(0)
        began, ended = time.thread_time(), began
        longest = max(longest, began - ended)
    return longest


@pytest.mark.parametrize("frames", FRAMES)
async def test_many_callers_with_short_frames_leave_turns_to_others(frames: str) -> None:
    opening, again = FRAMES[frames]
    sent = (opening + again * (BYTES // len(again))).replace("\n", "\r\n").encode()
    async with serving(most_connections=CALLERS + 1) as served:
        callers = [await served.caller() for _ in range(CALLERS)]
        other = await served.caller()
        over = asyncio.Event()
        turns = asyncio.create_task(longest_turn(over))
        for caller in callers:
            caller.writer.write(sent)
        for _ in range(10):
            assert (await other.ask(POST + "Content-Length: 2\n\nab"))[2] == b"POST ab"
        await until_read(callers)
        over.set()

        print(f"{frames}: {await turns * 1000:.1f} ms")
        assert await turns < MOST_SECONDS


async def until_read(callers: Sequence[Caller]) -> None:
    """Returns when the broker has taken, or given up, what all of them have sent."""
    for caller in callers:
        with suppress(ConnectionError):
            async with asyncio.timeout(STILL_SECONDS):
                await caller.writer.drain()


async def test_what_comes_in_many_short_frames_is_read_whole_and_in_its_order(served: Served, caller: Caller) -> None:
    count, size = 60, 700
    for number in range(count):
        caller.send(CHUNKED + f"3\n{number:03d}\n" + "1\na\n" * size + "0\n\n")

    assert [(await caller.answer())[2] for _ in range(count)] == [
        b"POST %03d" % number + b"a" * size for number in range(count)
    ]
    await until(lambda: not served.connections.is_short)


async def test_the_rest_of_a_refused_body_in_short_chunks_is_dropped_to_its_end(caller: Caller) -> None:
    caller.send(CHUNKED.replace("/orders", "/refused") + "1\na\n" * 100_000 + "0\n\n")

    assert (await caller.answer())[0] == 401
    assert await caller.rest() == b""
