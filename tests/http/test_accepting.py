"""Callers that come together are taken in together, and none is lost while a process can open no further socket."""

import asyncio
import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator

import uvloop

from tests.broker.polling import STILL_SECONDS
from tests.http.servers import serving

CALLERS = 100
# A turn of the event loop under load.
TURN_SECONDS = 0.005
GET = b"GET /late HTTP/1.1\r\nHost: broker\r\n\r\n"


# What a caller of a long request has sent before it is accepted, and how many of them one turn accepts at most. With
# turns that grow by what they accept, a turn accepted 58.
LONG = b"POST /wait HTTP/1.1\r\nHost: broker\r\nContent-Length: 120001\r\n\r\n" + bytes(120_000)
MOST_PER_TURN = 20


def work(seconds: float) -> None:
    """Takes this time of the CPU."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_callers_that_come_together_under_load_are_taken_in_within_a_few_turns() -> None:
    async def turns() -> int:
        async with serving(most_connections=CALLERS) as served:
            with contextlib.ExitStack() as callers:
                for _ in range(CALLERS):
                    callers.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                count = 0
                while served.connections.count < CALLERS and count < CALLERS:
                    work(TURN_SECONDS)
                    await asyncio.sleep(0)
                    count += 1
        return count

    # The server of uvloop takes in one of them in each turn.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(turns()) <= CALLERS // 4


def test_callers_that_come_together_with_long_requests_leave_turns_to_others() -> None:
    async def most_of_a_turn() -> int:
        async with serving(most_connections=CALLERS) as served:
            with contextlib.ExitStack() as callers:
                for _ in range(CALLERS):
                    caller = callers.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                    caller.setblocking(False)
                    caller.send(LONG)
                most = count = 0
                while count < CALLERS:
                    await asyncio.sleep(0)
                    before, count = count, served.connections.count
                    most = max(most, count - before)
        return most

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(most_of_a_turn()) <= MOST_PER_TURN


@contextlib.contextmanager
def no_further_file() -> Iterator[None]:
    """This process has opened as many files as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + 64, hard))
    opened = [first]
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.dup(0))
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_caller_that_comes_while_no_socket_can_be_opened_is_served_afterwards() -> None:
    loop = asyncio.get_running_loop()
    async with serving() as served:
        caller = await served.caller()
        with socket.socket() as late:
            with no_further_file():
                late.connect(("127.0.0.1", served.port))
                late.setblocking(False)
                await loop.sock_sendall(late, GET)
                answered = [await caller.ask("GET /still HTTP/1.1\nHost: broker\n\n") for _ in range(3)]
            async with asyncio.timeout(STILL_SECONDS):
                answer = await loop.sock_recv(late, 1024)

    assert [status for status, _, _ in answered] == [200] * 3
    assert answer.startswith(b"HTTP/1.1 200 OK")
