"""Promises of a call to a server that does what no server should."""

import asyncio
import gzip
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from tests.broker.polling import at_this_load
from tests.webhooks.calls import COMMIT, PAYLOAD, SHORT, ask
from tests.webhooks.strangers import Connection, Stranger, answer
from webhooks.addresses import parse_networks
from webhooks.caller import MAX_ANSWER_BYTES, Caller
from webhooks.connections import Line
from webhooks.endpoint_answers import Answer
from webhooks.signing import make_secret

#: Pieces of HTTP that don't belong together.
SCRAPS = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nretry-after: 99999999999999999999\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/9.9 999 \xff\r\n",
    b"content-length: 5\r\n",
    b"content-length: -1\r\n",
    b"transfer-encoding: chunked\r\n",
    b"content-encoding: gzip\r\n",
    b"set-cookie: =\x01;;\r\n",
    b"ffffffffffffffffff\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"\r\n",
]


async def test_an_answer_that_ends_too_early_is_no_answer(caller: Caller, stranger: Stranger, secret: str) -> None:
    async def half(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer(body=COMMIT)[:-10])

    got = await ask(caller, await stranger.listen(half), secret)

    assert (got.outcome, got.asked, got.status, got.body) == ("protocol", True, 200, b"")


async def test_a_server_that_never_answers_is_a_timeout_that_was_asked(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def stay_silent(connection: Connection) -> None:
        await connection.request()
        await connection.closed_by_caller()

    began = time.monotonic()
    got = await ask(caller, await stranger.listen(stay_silent), secret, SHORT)

    assert (got.outcome, got.asked, got.status) == ("timeout", True, None)
    assert got.reason == f"The deadline of {SHORT:g} s passed before its whole answer came."
    assert time.monotonic() - began < at_this_load(SHORT + 0.5)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\n", *[b"x-a: 1\r\n"] * 1_000], id="headers"),
        pytest.param([b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n", *[b"x"] * 1_000], id="body"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n"] * 10, id="interim answers"),
        pytest.param([b"H"], id="a single byte"),
    ],
)
async def test_a_server_that_drips_is_held_to_one_deadline(
    caller: Caller, stranger: Stranger, secret: str, chunks: list[bytes]
) -> None:
    async def drip(connection: Connection) -> None:
        await connection.request()
        await connection.send(*chunks, every_seconds=0.05)
        await connection.closed_by_caller()

    began = time.monotonic()
    got = await ask(caller, await stranger.listen(drip), secret, SHORT)

    assert (got.outcome, got.asked) == ("timeout", True)
    assert time.monotonic() - began < at_this_load(SHORT + 0.5)


async def test_a_server_that_does_not_read_is_a_timeout(caller: Caller, stranger: Stranger, secret: str) -> None:
    async def read_nothing(connection: Connection) -> None:
        await asyncio.Event().wait()

    url = await stranger.listen(read_nothing)

    got = await ask(caller, url, secret, SHORT, payload=b'"' + b"a" * 16_000_000 + b'"')

    assert (got.outcome, got.asked) == ("timeout", True)


async def test_a_server_that_hangs_up_in_the_middle_of_a_request_was_not_asked_and_refuses_its_size(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def hang_up(connection: Connection) -> None:
        await connection.reader.readexactly(100_000)

    url = await stranger.listen(hang_up)

    got = await ask(caller, url, secret, payload=b'"' + b"a" * 16_000_000 + b'"')

    assert (got.outcome, got.asked, got.payload_refused) == ("protocol", False, True)


async def test_a_connection_is_closed_at_once_with_what_it_has_not_sent(stranger: Stranger) -> None:
    async def read_nothing(connection: Connection) -> None:
        await asyncio.Event().wait()

    url, loop = URL(await stranger.listen(read_nothing)), asyncio.get_running_loop()
    transport, line = await loop.create_connection(lambda: Line(loop), str(url.host), url.port or 0)
    transport.write(b"a" * 16_000_000)
    closed = line.closed
    assert closed

    line.close()

    await asyncio.wait_for(closed, 120)


async def test_an_answer_above_the_cap_is_cut_off_and_its_status_is_kept(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def pour(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer("410 Gone", b"x" * 10_000_000))
        await connection.closed_by_caller()

    got = await ask(caller, await stranger.listen(pour), secret)

    assert (got.outcome, got.asked, got.status, got.body) == ("too_large", True, 410, b"")
    assert got.reason == "The endpoint answered 410 with more than 65536 bytes."
    await asyncio.wait_for(stranger.hung_up.wait(), 120)


async def test_the_cap_is_exact_and_the_caller_may_allow_more(caller: Caller, stranger: Stranger, secret: str) -> None:
    url = await stranger.answers(answer(body=b"x" * MAX_ANSWER_BYTES), answer(body=b"x" * (MAX_ANSWER_BYTES + 1)))

    outcomes = [
        (await caller.post(url, PAYLOAD, [secret], "msg_1", 5, allowance_bytes=allowance)).outcome
        for allowance in (0, 0, 1)
    ]

    assert outcomes == ["answered", "too_large", "answered"]


async def test_a_redirect_is_an_answer_and_is_not_followed(caller: Caller, stranger: Stranger, secret: str) -> None:
    elsewhere = Stranger()
    async with elsewhere:
        target = await elsewhere.answers(answer(body=COMMIT))
        url = await stranger.answers(answer("307 Temporary Redirect", location=target))

        got = await ask(caller, url, secret)

    assert (got.outcome, got.status, got.ok) == ("answered", 307, False)
    assert elsewhere.connections == 0


async def test_nothing_is_decompressed(caller: Caller, stranger: Stranger, secret: str) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    small = gzip.compress(COMMIT)
    url = await stranger.answers(
        answer(body=small, content_encoding="gzip"), answer(body=bomb, content_encoding="gzip")
    )

    first = await ask(caller, url, secret)
    second = await caller.post(url, PAYLOAD, [secret], "msg_1", 5, allowance_bytes=len(bomb))

    assert stranger.requests[0].headers["accept-encoding"] == "identity"
    assert first.body == small
    assert second.body == bomb


async def test_cookies_are_not_kept(caller: Caller, stranger: Stranger, secret: str) -> None:
    url = await stranger.answers(answer(set_cookie="session=1; Path=/"))

    await ask(caller, url, secret)
    await ask(caller, url, secret)

    assert all("cookie" not in request.headers for request in stranger.requests)


async def test_what_a_server_says_unasked_on_an_idle_connection_is_never_taken_for_an_answer(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def speak_unasked(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer(body=COMMIT), every_seconds=0.05)  # Time for the caller to be done with it.
        await connection.send(answer("408 Request Timeout"))
        await connection.closed_by_caller()
        stranger.hung_up.set()

    url = await stranger.listen(speak_unasked)
    assert (await ask(caller, url, secret)).body == COMMIT
    await asyncio.wait_for(stranger.hung_up.wait(), 120)

    got = await ask(caller, url, secret)

    assert (got.status, got.body) == (200, COMMIT)
    assert stranger.connections == 2


async def test_an_answer_behind_the_answer_is_not_kept_for_the_next_question(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def answer_everything_twice(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer(body=COMMIT) + answer(body=b"the answer to a later question"))
        await connection.closed_by_caller()

    url = await stranger.listen(answer_everything_twice)

    bodies = [(await ask(caller, url, secret)).body for _ in range(3)]

    assert bodies == [COMMIT] * 3
    assert stranger.connections == 3


async def test_a_server_that_floods_an_idle_connection_is_hung_up_on(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def flood_when_idle(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer(body=COMMIT), every_seconds=0.05)
        while True:
            await connection.send(answer() * 1_000)

    url = await stranger.listen(flood_when_idle)

    got = await ask(caller, url, secret)

    assert got.ok
    await asyncio.wait_for(stranger.hung_up.wait(), 10)  # Before the connection is closed for being idle.


async def test_a_flood_of_interim_answers_is_cut_off(caller: Caller, stranger: Stranger, secret: str) -> None:
    async def never_come_to_the_point(connection: Connection) -> None:
        await connection.request()
        while True:
            await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)

    got = await ask(caller, await stranger.listen(never_come_to_the_point), secret)

    assert (got.outcome, got.asked) == ("protocol", True)


@pytest.mark.parametrize(
    ("opening", "again"),
    [
        pytest.param(b"1;", b"x" * 1_000, id="extension of a chunk"),
        pytest.param(b"", b"1;" + b"x" * 1_000 + b"\r\na\r\n", id="extensions of chunks"),
        pytest.param(b"1\r\na\r\n0\r\n", b"a:b\r\n" * 100, id="trailers"),
    ],
)
async def test_a_flood_beside_an_answer_is_cut_off(
    caller: Caller, stranger: Stranger, secret: str, opening: bytes, again: bytes
) -> None:
    async def never_end(connection: Connection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + opening)
        while True:
            await connection.send(again)

    began = time.monotonic()
    got = await ask(caller, await stranger.listen(never_end), secret, 30)

    assert (got.asked, got.body, got.outcome in ("too_large", "protocol")) == (True, b"", True)
    assert time.monotonic() - began < at_this_load(5)


async def test_an_answer_in_chunks_of_one_byte_is_read_whole(caller: Caller, stranger: Stranger, secret: str) -> None:
    body = b"x" * (MAX_ANSWER_BYTES - 1)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"

    url = await stranger.answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)

    assert (await ask(caller, url, secret)).body == body


def test_whatever_bytes_a_server_sends_the_caller_gets_an_answer() -> None:
    async def made() -> Caller:
        return Caller(parse_networks("127.0.0.0/8"))

    async def call(chunks: list[bytes]) -> Answer:
        async def send_and_leave(connection: Connection) -> None:
            await connection.request()
            await connection.send(b"".join(chunks))

        async with Stranger() as stranger:
            return await ask(caller, await stranger.listen(send_and_leave), make_secret())

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(SCRAPS)), min_size=1, max_size=8))
    def gets_an_answer(chunks: list[bytes]) -> None:
        got = runner.run(call(chunks))

        assert got.outcome in ("answered", "protocol", "timeout")
        assert got.asked

    with asyncio.Runner() as runner:
        # One for all servers: to make a caller, which reads every trusted certificate, takes longer than a call.
        caller = runner.run(made())
        gets_an_answer()
        runner.run(caller.close())
