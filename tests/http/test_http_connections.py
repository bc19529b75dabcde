"""HTTP on the wire: what a caller sends is one request as every proxy before the broker sees it, or it is refused."""

import asyncio

import pytest

from mqbroker.wire.basis.meaning import MAX_HEADERS
from mqbroker.wire.connection import DROPPED_BYTES
from mqbroker.wire.reader import HEAD_BYTES
from tests.http.servers import POST, Caller, Served, until_taken


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
        POST + "X-Namespace: a\nX-Namespace: b\n\n",
        POST + "Content-Encoding: identity\nContent-Encoding: gzip\n\n",
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
        "two namespaces",
        "two codings",
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


async def test_a_body_in_short_chunks_waits_in_little_more_than_its_size(served: Served, caller: Caller) -> None:
    chunks = "2\nab\n" * 20_000
    caller.send(f"{POST}Transfer-Encoding: chunked\n\n{chunks}0\n\n")

    assert (await caller.answer())[2] == b"POST " + b"ab" * 20_000
