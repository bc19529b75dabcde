"""Large answers that are whole: a caller that does not read them loses its own before the process holds too much."""

import asyncio
import contextlib
import http.client
import json
from urllib.parse import urlsplit

import psutil

from mqbroker.api.unread import MOST_BYTES, SMALL_BYTES, Unread
from mqbroker.wire.exchange import Exchange
from scheduling.sending import batches
from tests.broker import stalled
from tests.broker.polling import STILL_SECONDS
from tests.broker.running import API_KEY, RunningBroker
from tests.http.servers import Page, serving

CONTENT = bytes(MOST_BYTES // 2 - 1)
ASK = "GET /large HTTP/1.1\nHost: broker\n\n"
CALLERS = 60
SPARE = 8


class Large(Page):
    """Each request is answered with half of what all answers may have."""

    def __init__(self) -> None:
        super().__init__()
        self.unread = Unread()

    async def __call__(self, exchange: Exchange) -> None:
        self.taken.append(exchange.path)
        await self.unread.send(exchange, 200, (), CONTENT)


async def until_taken(page: Page, count: int) -> None:
    async with asyncio.timeout(STILL_SECONDS):
        while len(page.taken) < count:  # noqa: ASYNC110  # what is waited for comes over the wire
            await asyncio.sleep(0.01)


async def test_the_answer_that_was_begun_first_is_cut_where_another_finds_no_room() -> None:
    page = Large()
    async with serving(page) as served:
        callers = [await served.caller() for _ in range(3)]
        for number, caller in enumerate(callers, 1):
            caller.send(ASK)
            await until_taken(page, number)
        answers = await asyncio.gather(callers[1].answer(), callers[2].answer())

        assert [len(content) for _, _, content in answers] == [len(CONTENT)] * 2
        assert len(await callers[0].rest()) < len(CONTENT)


async def test_a_connection_whose_large_answer_was_read_is_kept() -> None:
    async with serving(Large()) as served:
        caller = await served.caller()

        assert [len((await caller.ask(ASK))[2]) for _ in range(3)] == [len(CONTENT)] * 3


def test_callers_that_do_not_read_what_django_answers_hold_no_thread(broker: RunningBroker) -> None:
    process = psutil.Process(broker.webs[0].pid)
    request = stalled.get("/v1/schema", API_KEY)
    assert broker.wire().get("/v1/schema").status == 200
    before = process.num_threads()

    with stalled.stalled(broker.url, request, CALLERS) as callers:
        assert [caller.recv(12) for caller in callers] == [b"HTTP/1.1 200"] * CALLERS
        assert broker.wire().get("/healthz").status == 200
        assert process.num_threads() <= before + SPARE


def test_a_large_answer_without_a_task_is_whole_and_its_connection_kept(broker: RunningBroker, orders: str) -> None:
    batch = json.dumps({"topic": orders, "messages": [{"body": "x"}] * batches.MAX_MESSAGES}).encode()
    with contextlib.closing(http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)) as connection:
        for _ in range(3):
            connection.request("POST", "/v1/messages/batch", batch, {"Authorization": f"Bearer {API_KEY}"})
            answer = connection.getresponse()
            content = answer.read()

            assert answer.status == 201
            assert len(content) > SMALL_BYTES
            assert len(json.loads(content)["results"]) == batches.MAX_MESSAGES
