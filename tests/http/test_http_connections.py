"""HTTP on the wire: what a caller sends is one request as every proxy before the broker sees it, or it is refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from mqbroker.http.connection import DROPPED_BYTES, IDLE_SECONDS
from mqbroker.http.reader import HEAD_BYTES, MAX_HEADERS
from mqbroker.http.taking import UNREAD_BYTES, UNREAD_SECONDS
from tests.broker.polling import PAUSE_SECONDS
from tests.http.servers import MOST_CONNECTIONS, Caller, Served, serving

POST = "POST /orders HTTP/1.1\nHost: broker\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


@pytest.fixture
async def caller(served: Served) -> Caller:
    return await served.caller()


async def until(holds: Callable[[], bool]) -> None:
    """Returns when it holds."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  # what is waited for comes over the wire
            await asyncio.sleep(PAUSE_SECONDS)


async def until_taken(served: Served, count: int) -> None:
    """Returns when so many requests have been taken."""
    await until(lambda: len(served.page.taken) >= count)


async def test_a_connection_serves_one_request_after_the_other(caller: Caller) -> None:
    first = await caller.ask(POST + "Content-Length: 2\n\nab")
    second = await caller.ask("GET /a%20b?c=d HTTP/1.1\nHost: broker\n\n")

    assert (first[0], first[2]) == (200, b"POST ab")
    assert (second[0], second[1]["x-path"], second[2]) == (200, "/a b", b"GET ")


async def test_requests_that_come_together_are_answered_in_their_order(caller: Caller) -> None:
    caller.send("".join(f"{POST}Content-Length: 3\n\n{number:03d}" for number in range(100)))

    assert [(await caller.answer())[2] for _ in range(100)] == [b"POST %03d" % number for number in range(100)]


async def test_a_request_may_come_byte_by_byte(caller: Caller) -> None:
    for character in POST + "Content-Length: 2\n\nab":
        caller.send(character)
        await asyncio.sleep(0)

    assert (await caller.answer())[2] == b"POST ab"


async def test_a_body_in_chunks_is_read_whole_and_the_next_request_behind_it(caller: Caller) -> None:
    caller.send(POST + "Transfer-Encoding: chunked\n\n3\nabc\n2;x=y\nde\n0\nX-Later: 1\n\n" + POST + "\n")

    assert [(await caller.answer())[2] for _ in range(2)] == [b"POST abcde", b"POST "]


async def test_the_answer_to_a_head_has_no_content(caller: Caller) -> None:
    caller.send("HEAD /orders HTTP/1.1\nHost: broker\nConnection: close\n\n")

    head, _, content = (await caller.rest()).partition(b"\r\n\r\n")

    assert b"content-length: 5" in head
    assert content == b""


@pytest.mark.parametrize(
    "request_",
    [
        "GET /orders HTTP/1.0\n\n",
        "GET /orders HTTP/1.1\nHost: broker\nConnection: close\n\n",
    ],
)
async def test_a_connection_ends_when_its_caller_asks_for_it(caller: Caller, request_: str) -> None:
    status, headers, _ = await caller.ask(request_)

    assert (status, headers["connection"]) == (200, "close")
    assert await caller.rest() == b""


async def test_a_connection_of_http_1_0_is_kept_where_its_caller_asks_for_it(caller: Caller) -> None:
    request = "GET /orders HTTP/1.0\nConnection: keep-alive\n\n"

    assert [(await caller.ask(request))[0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    "request_",
    [
        "no request at all\n\n",
        "CONNECT elsewhere:443 HTTP/1.1\nHost: elsewhere\n\n",
        POST + "Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n",
        POST + "Content-Length: 1\nContent-Length: 2\n\nab",
        POST + "Content-Length: -1\n\n",
        POST + "Content-Length: 1x\n\na",
        POST + "Transfer-Encoding: chunked\n\nnone\n",
        POST + "Bad Header: 1\n\n",
        POST + "X-One: 1\n" * (MAX_HEADERS + 1) + "\n",
        "GET /orders HTTP/1.1\n\n",
        "GET /orders HTTP/1.1\nHost: broker\nHost: another\n\n",
        POST + "Authorization: Bearer a\nAuthorization: Bearer b\n\n",
        POST + "Transfer-Encoding: gzip, chunked\n\n0\n\n",
        POST + "Transfer-Encoding: gzip\nTransfer-Encoding: chunked\n\n0\n\n",
        "POST /orders HTTP/1.0\nTransfer-Encoding: chunked\n\n0\n\n",
        "GET /orders HTTP/0.9\nHost: broker\n\n",
        "GET /orders HTTP/2.0\nHost: broker\n\n",
    ],
    ids=[
        "garbage",
        "tunnel",
        "two lengths",
        "contradiction",
        "negative",
        "no number",
        "no chunk",
        "bad name",
        "too many",
        "no host",
        "two hosts",
        "two keys",
        "coded",
        "coded in two lines",
        "chunks of 1.0",
        "0.9",
        "2.0",
    ],
)
async def test_what_is_no_request_is_refused_and_ends_the_connection(
    served: Served, caller: Caller, request_: str
) -> None:
    status, headers, _ = await caller.ask(request_ + POST + "Content-Length: 1\n\nz")

    assert (status, headers["connection"]) == (400, "close")
    assert await caller.rest() == b""
    # What came behind it was not taken for a request.
    assert len(served.page.taken) <= 1


async def test_a_request_before_one_that_is_none_has_its_answer(caller: Caller) -> None:
    """A sender that is answered 400 knows that nothing was stored."""
    caller.send("POST /orders HTTP/1.1\nHost: broker\nContent-Length: 1\n\na" + "no request at all\n\n")

    answers = [await caller.answer(), await caller.answer()]

    assert [(status, content) for status, _, content in answers] == [(200, b"POST a"), (400, b"no request")]
    assert await caller.rest() == b""


async def test_a_head_without_an_end_is_refused(caller: Caller) -> None:
    caller.send(POST + "X-Endless: ")
    caller.send("x" * HEAD_BYTES)

    assert (await caller.answer())[0] == 431


async def test_a_head_that_is_too_large_is_refused_in_one_piece_and_behind_another_one_too(caller: Caller) -> None:
    large = "".join(f"X-{number}: {'x' * 1000}\n" for number in range(HEAD_BYTES // 1000 + 1))
    caller.send(POST + "Content-Length: 1\n\na" + POST + f"Content-Length: 1\n{large}\nb")

    answers = [await caller.answer(), await caller.answer()]

    assert [(status, content) for status, _, content in answers] == [(200, b"POST a"), (431, b"no request")]
    assert await caller.rest() == b""


@pytest.mark.parametrize(
    ("opening", "again", "times"),
    [
        ("0\n", "a:b\n", MAX_HEADERS + 2),
        ("0\n", f"a: {'b' * 1000}\n", HEAD_BYTES // 1000 + 1),
        ("0\na: ", "b" * 1000, HEAD_BYTES // 1000 + 1),
        ("1;", "b" * 1000, HEAD_BYTES // 1000 + 1),
        ("", f"1;{'x' * 1000}\na\n", HEAD_BYTES // 1000 + 2),
    ],
    ids=["trailers", "large trailers", "an endless trailer", "an endless extension", "many extensions"],
)
async def test_what_comes_within_a_body_and_is_none_of_it_is_held_to_the_size_of_a_head(
    served: Served, caller: Caller, opening: str, again: str, times: int
) -> None:
    caller.send(POST + "Transfer-Encoding: chunked\n\n" + opening)
    await until_taken(served, 1)
    caller.send(again * times)

    assert (await caller.answer())[0] == 431
    assert await caller.rest() == b""


async def test_a_body_may_come_in_many_short_chunks(caller: Caller) -> None:
    chunks = "".join(f"{number % 2 + 1:x}\n{'ab'[: number % 2 + 1]}\n" for number in range(20_000))
    caller.send(POST + "Transfer-Encoding: chunked\n\n" + chunks + "0\nX-Later: 1\n\n")

    assert (await caller.answer())[2] == b"POST " + b"aab" * 10_000


async def test_a_large_body_makes_no_head_too_large(caller: Caller) -> None:
    body = "x" * (2 * HEAD_BYTES)

    assert (await caller.ask(POST + f"Content-Length: {len(body)}\n\n{body}"))[0] == 200


@pytest.mark.parametrize("target", ["http://broker:8000/orders", "HTTPS://broker/orders?a=b"])
async def test_a_target_may_be_a_whole_url(caller: Caller, target: str) -> None:
    status, headers, _ = await caller.ask(f"GET {target} HTTP/1.1\nHost: a-proxy\n\n")

    assert (status, headers["x-path"]) == (200, "/orders")


async def test_another_protocol_is_not_spoken(caller: Caller) -> None:
    """Java's client asks for HTTP/2 with its first request."""
    upgrade = "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\n"

    answers = [
        await caller.ask(POST + upgrade + "Content-Length: 2\n\nab"),
        await caller.ask("GET /orders HTTP/1.1\nHost: broker\n" + upgrade + "\n"),
        await caller.ask(POST + upgrade + "Transfer-Encoding: chunked\n\n1\nc\n0\n\n"),
        await caller.ask(POST + "Content-Length: 2\n\nde"),
    ]

    assert [content for _, _, content in answers] == [b"POST ab", b"GET ", b"POST c", b"POST de"]


async def test_a_caller_that_waits_for_100_sends_its_body_only_where_it_is_read(served: Served) -> None:
    taken, refused = await served.caller(), await served.caller()
    expecting = " HTTP/1.1\nHost: broker\nExpect: 100-continue\nContent-Length: 2\n\n"

    welcome = await taken.ask("POST /orders" + expecting)
    done = await taken.ask("ab")
    no = await refused.ask("POST /refused" + expecting)

    assert (welcome[0], done[0], done[2]) == (100, 200, b"POST ab")
    assert (no[0], no[1]["connection"]) == (401, "close")


async def test_an_answer_before_the_end_of_a_body_is_read_by_its_caller(caller: Caller) -> None:
    # Three times the longest request of a legal message.
    size = 100 * 1024 * 1024
    assert size < DROPPED_BYTES
    caller.send(f"POST /refused HTTP/1.1\nHost: broker\nContent-Length: {size}\n\n")
    caller.writer.write(bytes(size))
    await caller.writer.drain()

    assert (await caller.answer())[0] == 401
    assert await caller.rest() == b""


async def test_an_answer_that_fails_ends_its_connection_without_one(caller: Caller) -> None:
    caller.send("GET /fails HTTP/1.1\nHost: broker\n\n")

    assert await caller.rest() == b""


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


async def test_a_body_in_short_chunks_waits_in_little_more_than_its_size(served: Served, caller: Caller) -> None:
    chunks = "2\nab\n" * 20_000
    caller.send(f"{POST}Transfer-Encoding: chunked\n\n{chunks}0\n\n")

    assert (await caller.answer())[2] == b"POST " + b"ab" * 20_000
