"""The answers of a subscription's server to the messages that are pushed to it."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.broker.endpoints import Asked, ProducerEndpoint, Reply
from tests.broker.wire import Document


def pushed(server: ProducerEndpoint) -> list[Document]:
    """Every entry that was pushed so far, the first first; one that came twice is there twice."""
    return [entry for asked in list(server.asked) for entry in asked.document["messages"]]


def texts(server: ProducerEndpoint) -> list[str]:
    """The bodies of the messages that were pushed so far."""
    return [entry["message"]["body"] for entry in pushed(server)]


def acks(after_seconds: float = 0) -> Reply:
    """Acks all that came with an empty answer, once its work has taken so long."""

    async def reply(asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(after_seconds)
        return web.Response(status=204)

    return reply


def settles(result: Callable[[Document], dict[str, Any] | None]) -> Reply:
    """Answers each entry with the function's result, such as `{"status": "nack"}`; None leaves the entry out."""

    async def reply(asked: Asked) -> web.StreamResponse:
        found = {entry["message"]["message_id"]: result(entry) for entry in asked.document["messages"]}
        results = [{"message_id": message_id, **said} for message_id, said in found.items() if said is not None]
        return web.json_response({"results": results})

    return reply
