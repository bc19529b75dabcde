"""Checks over Telemetry: a producer with an open stream is asked about the half messages of its topics that are due."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

import structlog

from mqbroker.api.requests import begin_request
from mqbroker.errors import refusal_of
from mqbroker.rocketmq import messages
from mqbroker.rocketmq.protocol.service_pb2 import RecoverOrphanedTransactionCommand, TelemetryCommand
from mqbroker.rocketmq.telemetry import Stream, streams
from store.notices.presence import Present
from store.process import runtime
from store.process.answer_budget import Hold
from transactions.checks import due, polling
from transactions.checks.polling import MAX_TRANSACTIONS, IsAllowed, ReceiveChecks

logger = structlog.stdlib.get_logger(__name__)

LOOK_SECONDS = 1.0


class Checks:
    """Looks once in LOOK_SECONDS for what is due of the topics whose producers have a stream here.

    A group without a stream is not asked, and nothing is counted for it. A question that was handed to a stream counts,
    as one does that a poll was handed.
    """

    def __init__(self) -> None:
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look, in the running event loop."""
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
        due_ones = await due.among(topics)
        for topic in topics:
            stream = streams().of_topic(topic)
            if stream is not None:
                with runtime.control(Present).asks("producer", topic, (stream.call.client_id, 0)):
                    if topic in due_ones:
                        await _try(topic, _ask(stream, topic))


async def _try(topic: str, work: Coroutine[Any, Any, None]) -> None:
    """Does one work, or logs why it has to wait: what one producer's key is refused holds up no other topic."""
    try:
        await work
    except Exception as problem:
        refusal = refusal_of(problem)
        if refusal is None:
            logger.exception("checks failed", topic=topic)
        else:
            logger.warning("checks have to wait", topic=topic, reason=refusal.detail)


async def _ask(stream: Stream, topic: str) -> None:
    """Asks a producer about what is due of a topic, all of it while its stream has room."""
    with Hold(stream.call.caller.name) as hold:
        asked = MAX_TRANSACTIONS
        while asked == MAX_TRANSACTIONS and stream.room:
            begin_request()
            wanted = ReceiveChecks(max_transactions=min(stream.room, MAX_TRANSACTIONS))
            received = await polling.receive(topic, wanted, hold, stream.call.gone, partial(_allowed, stream))
            asked = len(received.documents)
            for document in received.documents.values():
                stream.ask(await _question(stream, document))
            if await received.given_back(stream.call.gone):
                return


async def _allowed(stream: Stream) -> IsAllowed | None:
    caller = await stream.call.caller_now()
    caller.require_any("produce")
    return None if caller.may_everywhere("produce") else partial(caller.may, "produce")


async def _question(stream: Stream, document: dict[str, Any]) -> TelemetryCommand:
    """What a client is asked about a transaction, by the document that a check-back over HTTP has."""
    message = await messages.answered(messages.row_of(document), stream.call.shown(document["topic"]))
    command = RecoverOrphanedTransactionCommand(message=message, transaction_id=str(document["transaction_id"]))
    return TelemetryCommand(recover_orphaned_transaction_command=command)
