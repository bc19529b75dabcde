"""A broker behind a network that loses, delays and refuses: the client's broker for tests, on the simulated clock."""

import asyncio
import json
from collections.abc import Callable
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
from mqbroker_client.aio.coalescing import AsyncLane
from mqbroker_client.aio.connection import AsyncBroker, Line
from mqbroker_client.contrib.testing.memory import MemoryBroker
from mqbroker_client.core import errors
from mqbroker_client.core.calls import Call, same
from mqbroker_client.core.documents import Document
from mqbroker_client.core.requests import Answer, Request
from mqbroker_client.core.retries import Retry

from tests.simulated.loop.virtual import VirtualLoop, loop

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
#: What a caller's tries may take in all.
RETRY = Retry(tries=5, seconds=4.0)
LATENCIES = (0.0005, 0.003, 0.04, 0.6)
FAULTS = ("refused", "cut before", "cut behind", "busy", "broken", "silence")
# The first and the longest pause of a long poll that finds nothing; each pause is twice as long as the one before.
LOOK_SECONDS, MOST_LOOK_SECONDS = 0.05, 0.8
PATHS: dict[str, Callable[[Document], str]] = {
    "send": lambda _: "/v1/messages",
    "half": lambda _: "/v1/transactions",
    "end": lambda fields: f"/v1/transactions/{fields.pop('transaction_id')}/end",
    "ack": lambda fields: f"/v1/consumer-groups/{fields.pop('group')}/ack",
}


class Memory(MemoryBroker):
    """What a broker keeps, by the simulated clock."""

    def __init__(self, of: VirtualLoop) -> None:
        self._of = of
        #: Whether the network before it may fail.
        self.may_fail = True
        super().__init__()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._of.time())

    def answer(self, method: str, target: str, fields: Document) -> tuple[int, Document]:
        """The status and the document of one call."""
        content = json.dumps(fields).encode()
        try:
            self._topics.release_due()
            found = self._answer(Call(method, target, content, same))
        except errors.BrokerError as error:
            return error.status, {"code": error.code, "detail": error.detail}
        return 200, json.loads(json.dumps(found))

    def answer_bulk(self, operations: list[Document]) -> Document:
        """The results of several calls, in their order."""
        results = []
        for fields in operations:
            status, document = self.answer("POST", PATHS[fields.pop("op")](fields), fields)
            results.append({"status": status, **document})
        return {"results": results}


class Session:
    """Stands for the connections of an event loop, which are those of the simulation."""

    closed = False

    async def close(self) -> None:
        self.closed = True


class Wire:
    """The simulated network before a broker, and its own pace: each request may meet a fault."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._loop = loop()
        self.faults = [fault for fault in FAULTS if self._loop.chance.one_in(2)]
        self.is_calm = False
        #: The requests that the broker still works at.
        self.under_way = 0

    def sent(self, request: Request) -> "asyncio.Future[Answer]":
        """The answer to a request that leaves now; where its network is silent, it never comes."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        context = Context()
        context.run(self._loop.create_task, self._serve(request, answer, self._fault()), name="serve", context=context)
        return answer

    def _fault(self) -> str:
        chance = self._loop.chance
        if self.is_calm or not self.faults or not chance.one_in(5):
            return ""
        fault = self.faults[chance.choose(len(self.faults))]
        self._loop.note("meets", fault)
        return fault

    async def _serve(self, request: Request, answer: "asyncio.Future[Answer]", fault: str) -> None:
        self.under_way += 1
        try:
            await asyncio.sleep(0.0005 if self.is_calm else LATENCIES[self._loop.chance.choose(len(LATENCIES))])
            if fault in ("refused", "cut before"):
                return self._fail(answer, aiohttp.ClientConnectionError(fault))
            if fault in ("busy", "broken"):
                return self._refuse(request, answer, fault)
            status, document = await self._document(request, answer)
            if fault == "cut behind":
                return self._fail(answer, aiohttp.ServerDisconnectedError(fault))
            if fault == "silence":
                # It was done, and the answer never comes.
                return None
            await asyncio.sleep(0.0005)
            self._answer(request, answer, status, document)
        finally:
            self.under_way -= 1
        return None

    async def _document(self, request: Request, answer: "asyncio.Future[Answer]") -> tuple[int, Document]:
        fields: Document = json.loads(request.content or b"{}")
        if request.target == "/v1/bulk":
            return 200, self.memory.answer_bulk(fields["operations"])
        until = self._loop.time() + fields.pop("wait_seconds", 0)
        pause = LOOK_SECONDS
        while True:
            if answer.done():
                # The caller has hung up: nothing is handed out to it.
                return 503, {}
            status, document = self.memory.answer(request.method, request.target, dict(fields))
            is_empty = "messages" in document and not document["messages"]
            is_empty |= "transactions" in document and not document["transactions"]
            if not is_empty or self._loop.time() >= until:
                return status, document
            await asyncio.sleep(pause)
            pause = min(2 * pause, MOST_LOOK_SECONDS)

    def _refuse(self, request: Request, answer: "asyncio.Future[Answer]", fault: str) -> None:
        is_busy = fault == "busy"
        problem = {"code": "system_busy" if is_busy else "bulk_illegal", "detail": fault}
        self._answer(request, answer, 503 if is_busy else 400, problem)

    def _answer(self, request: Request, answer: "asyncio.Future[Answer]", status: int, document: Document) -> None:
        if not answer.done():
            answer.set_result(Answer(status, {"x-request-id": request.id}, json.dumps(document).encode()))

    def _fail(self, answer: "asyncio.Future[Answer]", problem: Exception) -> None:
        if not answer.done():
            answer.set_exception(problem)


class SimulatedBroker(AsyncBroker):
    """The client's broker whose requests go through the simulated network."""

    def __init__(self, memory: Memory) -> None:
        super().__init__("http://simulated.invalid", "key", retry=RETRY, timeout_seconds=4.0)
        self.wire = Wire(memory)

    def _line(self) -> Line:
        running = asyncio.get_running_loop()
        line = self._lines.get(running)
        if line is None:
            session: Any = Session()
            lane = AsyncLane(partial(self._together, session))
            line = self._lines[running] = Line(session, lane, is_left=running in self._closed)
        return line

    async def _exchange(self, session: aiohttp.ClientSession, url: str, request: Request, seconds: float) -> Answer:
        answer = self.wire.sent(request)
        # As aiohttp's: a TimeoutError.
        async with asyncio.timeout(seconds):
            return await answer
