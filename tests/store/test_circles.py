"""A request that is answered is freed at once: the process's garbage collector runs once in 50,000 objects."""

import asyncio
import gc
import json

import pytest

from mqbroker.wire.connections import Connections
from mqbroker.wire.room import Room
from tests.broker.running import API_KEY
from tests.http.servers import Caller
from tests.store.keeper import Keeper

REQUESTS = 60
GROUP = "order-service"


def request(path: str, content: dict[str, object]) -> str:
    """A request as it is sent."""
    body = json.dumps(content)
    return f"POST {path} HTTP/1.1\nhost: broker\nauthorization: Bearer {API_KEY}\ncontent-length: {len(body)}\n\n{body}"


async def garbage(text: str, status: int) -> int:
    """How many objects the garbage collector finds after so many requests."""
    from mqbroker.web import application  # read here: it needs the settings

    connections = Connections(application.handler(), Room(10, 10))
    server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
    async with server:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1]))
        assert [(await caller.ask(text))[0] for _ in range(3)] == [status] * 3
        gc.collect()
        gc.disable()
        try:
            assert [(await caller.ask(text))[0] for _ in range(REQUESTS)] == [status] * REQUESTS
            return gc.collect()
        finally:
            gc.enable()
            caller.writer.transport.abort()
            await connections.close(1)


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/v1/messages", {"topic": "orders", "body": "x"}, 201),
        ("/v1/messages/batch", {"topic": "orders", "messages": [{"body": "x"}] * 16}, 201),
        ("/v1/transactions", {"topic": "orders", "body": "x", "producer_group": GROUP}, 201),
        ("/v1/bulk", {"operations": [{"op": "send", "topic": "orders", "body": "x"}] * 16}, 200),
    ],
)
def test_an_answered_request_leaves_nothing_to_the_garbage_collector(
    keeper: Keeper, path: str, content: dict[str, object], status: int
) -> None:
    assert keeper.do(garbage(request(path, content), status)) < REQUESTS
