"""Promises of a call to an ordinary server, or to none."""

import asyncio
import json

import pytest
from standardwebhooks import Webhook

from tests.webhooks.calls import COMMIT, PAYLOAD, ask
from tests.webhooks.strangers import Connection, Stranger, answer
from webhooks.caller import Caller
from webhooks.signing import SecretIllegal, make_secret


async def test_a_server_gets_the_payload_signed_and_its_answer_comes_back_whole(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    url = await stranger.answers(answer(body=COMMIT))

    got = await ask(caller, url, secret)

    assert (got.outcome, got.asked, got.status, got.body, got.ok) == ("answered", True, 200, COMMIT, True)
    assert got.reason == "The endpoint answered 200."
    assert 0 < got.latency_ms < 5_000
    [request] = stranger.requests
    assert request.line == "POST /checks?shop=1 HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert Webhook(secret).verify(request.body, request.headers) == json.loads(PAYLOAD)


async def test_during_a_rotation_both_secrets_verify(caller: Caller, stranger: Stranger, secret: str) -> None:
    url, new = await stranger.answers(answer()), make_secret()

    await caller.post(url, PAYLOAD, [secret, new], "msg_1", 5)

    [request] = stranger.requests
    for known in (secret, new):
        assert Webhook(known).verify(request.body, request.headers) == json.loads(PAYLOAD)


async def test_a_secret_that_should_not_have_been_stored_is_the_callers_error(
    caller: Caller, stranger: Stranger
) -> None:
    url = await stranger.answers(answer())

    with pytest.raises(SecretIllegal):
        await ask(caller, url, "whsec_short")

    assert stranger.connections == 0


async def test_calls_one_after_another_use_one_connection(caller: Caller, stranger: Stranger, secret: str) -> None:
    url = await stranger.answers(answer(body=COMMIT))

    for _ in range(20):
        assert (await ask(caller, url, secret)).ok

    assert stranger.connections == 1
    assert len(stranger.requests) == 20


async def test_a_kept_connection_that_the_server_closed_is_replaced_and_not_taken_for_an_answer(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def hang_up_at_the_second_request(connection: Connection) -> None:
        await connection.request()
        await connection.send(answer(body=COMMIT))
        if connection.number == 1:
            await connection.reader.read(1)

    url = await stranger.listen(hang_up_at_the_second_request)

    first, second = await ask(caller, url, secret), await ask(caller, url, secret)

    assert (first.outcome, second.outcome) == ("answered", "answered")
    assert stranger.connections == 2


async def test_a_server_that_closes_a_new_connection_unanswered_was_asked_and_is_not_asked_again(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async def leave(connection: Connection) -> None:
        await connection.request()

    got = await ask(caller, await stranger.listen(leave), secret)

    assert (got.outcome, got.asked, got.status) == ("protocol", True, None)
    assert got.reason == "The endpoint closed the connection before its whole answer came."
    assert len(stranger.requests) == 1


async def test_a_large_payload_arrives_whole(caller: Caller, stranger: Stranger, secret: str) -> None:
    payload = json.dumps({"body": "a" * 4_194_304}).encode()

    got = await ask(caller, await stranger.answers(answer()), secret, payload=payload)

    assert got.ok
    assert stranger.requests[0].body == payload


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_retry_after_of_a_busy_server_is_kept(
    caller: Caller, stranger: Stranger, secret: str, status: str
) -> None:
    got = await ask(caller, await stranger.answers(answer(status, retry_after="7")), secret)

    assert (got.outcome, got.retry_after_seconds, got.ok) == ("answered", 7.0, False)


async def test_retry_after_of_any_other_answer_is_not(caller: Caller, stranger: Stranger, secret: str) -> None:
    got = await ask(caller, await stranger.answers(answer("500 Oops", retry_after="7")), secret)

    assert got.retry_after_seconds is None


async def test_a_port_without_a_server_is_refused_and_not_asked(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    async with Stranger() as gone:
        url = await gone.answers(answer())

    got = await ask(caller, url, secret)

    assert (got.outcome, got.asked, got.status) == ("refused", False, None)
    assert got.reason.startswith("No connection: ")


async def test_an_unknown_name_is_refused_and_not_asked(caller: Caller, secret: str) -> None:
    name = ".".join(["a" * 60] * 5)  # Longer than DNS allows: it is unknown at once, and no name server is asked.

    got = await ask(caller, f"http://{name}/checks", secret)

    assert (got.outcome, got.asked) == ("refused", False)
    assert got.reason.startswith("The host aaaa")


async def test_a_url_that_should_not_have_been_stored_is_refused_and_not_asked(caller: Caller, secret: str) -> None:
    got = await ask(caller, "ftp://example.com/checks", secret)

    assert (got.outcome, got.asked) == ("refused", False)
    assert got.reason == "The URL 'ftp://example.com/checks' does not begin with http:// or https://."


async def test_a_server_that_went_away_between_two_calls_was_not_asked(caller: Caller, secret: str) -> None:
    async with Stranger() as leaving:

        async def leave_at_the_second_request(connection: Connection) -> None:
            await connection.request()
            await connection.send(answer(body=COMMIT))
            await connection.reader.read(1)
            leaving.close()

        url = await leaving.listen(leave_at_the_second_request)
        assert (await ask(caller, url, secret)).ok

        got = await ask(caller, url, secret)

    assert (got.outcome, got.asked, got.status) == ("refused", False, None)


async def test_a_call_that_is_cancelled_ends_at_once_and_hangs_up(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    asked = asyncio.Event()

    async def stay_silent(connection: Connection) -> None:
        await connection.request()
        asked.set()
        await connection.closed_by_caller()
        stranger.hung_up.set()

    url = await stranger.listen(stay_silent)
    call = asyncio.create_task(ask(caller, url, secret, 60))
    await asyncio.wait_for(asked.wait(), 120)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(stranger.hung_up.wait(), 120)


async def test_interim_answers_are_read_over_on_each_request_of_a_kept_connection(
    caller: Caller, stranger: Stranger, secret: str
) -> None:
    url = await stranger.answers(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10 + answer(body=COMMIT))

    bodies = [(await ask(caller, url, secret)).body for _ in range(3)]

    assert bodies == [COMMIT] * 3
    assert stranger.connections == 1
