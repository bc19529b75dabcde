"""A stop gives the handlers that run the time that the broker was made with."""

import asyncio
import threading
from typing import Annotated, Any

import pytest
from faststream.params import Context
from mqbroker_client import Consumer
from mqbroker_client.contrib.faststream import MqBroker

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.faststream.conftest import found


@pytest.mark.parametrize("graceful_timeout", [0.2, None])
@pytest.mark.parametrize("kind", ["task", "thread"])
def test_a_stop_gives_handlers_no_more_than_the_graceful_timeout(
    broker: RunningBroker, orders: str, group: str, kind: str, graceful_timeout: float | None
) -> None:
    mq = MqBroker(broker.url, API_KEY, graceful_timeout=graceful_timeout, logger=None)
    begun: asyncio.Queue[str] = asyncio.Queue()
    ends = threading.Event()

    async def handle(body: str) -> None:
        begun.put_nowait(body)
        await asyncio.sleep(600)  # the handler that does not end

    def handle_in_a_thread(body: str, loop: Annotated[Any, Context()]) -> None:
        loop.call_soon_threadsafe(begun.put_nowait, body)
        ends.wait(600)

    # Two subscribers are stopped at once, and not one after the other.
    for each in (group, characters.name("others")):
        mq.subscriber(orders, group=each, invisible_seconds=10)(handle if kind == "task" else handle_in_a_thread)

    async def run() -> bool:
        mq.context.set_global("loop", asyncio.get_running_loop())
        async with mq:
            await mq.publish("one", orders)
            await mq.start()
            await found(begun, 2)
            # FastStream's own default is 15 s, that of a consumer 30 s.
            stopping = asyncio.create_task(mq.stop())
            # By turns of the loop: those of a busy machine are fewer, not more.
            for _ in range(100):
                if not stopping.done():
                    await asyncio.wait([stopping], timeout=0.05)
            is_stopped = stopping.done()
            ends.set()
            await stopping
            return is_stopped

    assert asyncio.run(run())
    [again] = eventually(lambda: Consumer(broker.client(), group).receive(orders, wait_seconds=1), within_seconds=30)
    assert (again.body, again.delivery_attempt) == (b"one", 2)
