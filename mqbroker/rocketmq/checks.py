"""Checks over Telemetry: asks producers with an open stream about due half messages of their topics.

A half message is first offered to streams of the API key that began it. Producers with another key are asked only if no
such stream is open.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Container, Coroutine
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import structlog

from mqbroker.api.requests import begin_request
from mqbroker.errors import refusal_of
from mqbroker.rocketmq import messages, reading
from mqbroker.rocketmq.beginners import beginners
from mqbroker.rocketmq.protocol.service_pb2 import RecoverOrphanedTransactionCommand, TelemetryCommand
from mqbroker.rocketmq.streams import Stream, Waiting, streams
from store.errors import NoPermission, Unauthenticated
from store.notices.presence import Present
from store.process import runtime
from store.process.answer_budget import Hold
from transactions.checks import due, polling
from transactions.checks.polling import MAX_TRANSACTIONS, IsAllowed, ReceiveChecks, Received

logger = structlog.stdlib.get_logger(__name__)

LOOK_SECONDS = 1.0
# The number of topics checked in one turn of the event loop; each takes about 20 µs.
TOPICS_OF_TURN = 50

# The document about one transaction in a check.
Document: TypeAlias = dict[str, Any]


class Checks:
    """Every LOOK_SECONDS looks for due checks of topics whose producers have an open stream in this process.

    A group without an open stream is not asked, and no check is counted. A question that is handed to a stream counts
    as a check, like a question that is handed to a poll.
    """

    def __init__(self) -> None:
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts looking for due checks in the running event loop."""
        self._looking = asyncio.create_task(self._look_forever(), name="checks")

    async def close(self) -> None:
        """Stops looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await _try("", self._look())

    async def _look(self) -> None:
        topics = streams().topics()
        if not topics:
            return
        begin_request()
        for number, (topic, is_due) in enumerate((await due.among(topics)).items()):
            stream = next((one for one in streams().of_topic(topic) if one.room), None)
            if stream is not None:
                with runtime.control(Present).asks("producer", topic, (stream.call.client_id, 0)):
                    if is_due:
                        await _try(topic, _ask(stream, topic))
            if number % TOPICS_OF_TURN == TOPICS_OF_TURN - 1:
                await asyncio.sleep(0)


async def _try(topic: str, work: Coroutine[Any, Any, None]) -> None:
    """Does the work for one topic.

    Logs a refusal, for example of a producer's key, so that the work for other topics continues.
    """
    try:
        await work
    except Exception as problem:
        refusal = refusal_of(problem)
        if refusal is None:
            logger.exception("checks failed", topic=topic)
        else:
            logger.warning("checks have to wait", topic=topic, reason=refusal.detail)


async def _ask(stream: Stream, topic: str) -> None:
    """Asks producers about the due half messages of a topic, until none is left or the stream has no room."""
    with Hold(stream.call.caller.name) as hold:
        asked = MAX_TRANSACTIONS
        while asked == MAX_TRANSACTIONS and stream.room:
            begin_request()
            wanted = ReceiveChecks(max_transactions=min(stream.room, MAX_TRANSACTIONS))
            received = await polling.receive(topic, wanted, hold, stream.call.gone, partial(_allowed, stream))
            asked = len(received.documents)
            if await _hand_out(received, stream, topic):
                return


async def _hand_out(received: Received, reader: Stream, topic: str) -> bool:
    """Sends each transaction to the stream of the client that is to be asked. Returns whether some transactions were
    returned to their group.
    """
    found: defaultdict[Stream | None, dict[UUID, Document]] = defaultdict(dict)
    for transaction_id, document in received.documents.items():
        asked = await _to_ask(transaction_id, reader, topic, found)
        if asked is not None:
            # Clients only see the first message of a transaction.
            document.pop("messages", None)
            size = len(str(document.get("body") or document.get("body_base64")))
            asked.ask(Waiting(size, partial(_question, asked, document)))
        found[asked][transaction_id] = document
    given_back = [
        await Received(documents, received.cell).given_back(_of_none() if asked is None else asked.call.gone)
        for asked, documents in found.items()
    ]
    return any(given_back)


async def _to_ask(transaction_id: UUID, reader: Stream, topic: str, chosen: Container[Stream | None]) -> Stream | None:
    """The stream to ask about a transaction: a stream of the key that began the transaction, or `reader` if this key
    has no open stream.

    None if the key has open streams but none has room: these streams are asked later. Streams in `chosen` have already
    been chosen for other transactions of this page.
    """

    def takes(stream: Stream) -> bool:
        return (stream.places if stream in chosen else stream.room) > 0

    key = beginners().of(transaction_id)
    is_there = False
    if key not in (None, reader.call.caller.name):
        for stream in streams().of_topic(topic, key):
            if await _may_produce(stream, topic):
                is_there = True
                if takes(stream):
                    return stream
    return reader if not is_there and takes(reader) else None


async def _may_produce(stream: Stream, topic: str) -> bool:
    """Whether a stream's key may still produce to the topic: its rights may have changed since the stream began."""
    try:
        return (await stream.call.caller_now()).may("produce", topic)
    except (Unauthenticated, NoPermission):
        return False


def _of_none() -> asyncio.Future[object]:
    """A future that is already done, as if the client had disconnected.

    Passed for transactions that no client can be asked about, so that their checks are not counted.
    """
    gone: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    gone.set_result(None)
    return gone


async def _allowed(stream: Stream) -> IsAllowed | None:
    caller = await stream.call.caller_now()
    caller.require_any("produce")
    return None if caller.may_everywhere("produce") else partial(caller.may, "produce")


@contextlib.asynccontextmanager
async def _question(stream: Stream, document: Document) -> AsyncIterator[TelemetryCommand]:
    """The commands that ask a client about a transaction, made from the document of a check-back over HTTP."""
    row = messages.row_of(document)
    async with reading.unpacking(stream.call.caller.name, row):
        message = await messages.answered(row, stream.call.shown(document["topic"]))
        command = RecoverOrphanedTransactionCommand(message=message, transaction_id=str(document["transaction_id"]))
        yield TelemetryCommand(recover_orphaned_transaction_command=command)
