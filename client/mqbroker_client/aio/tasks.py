"""The parts that differ between tasks and threads. `mqbroker_client.core.threads` has the same names, for threads."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.core.calls import Call
from mqbroker_client.core.later import MOST_WAITING, fate

# The logger is named after the producer's module, which programs know.
log = logging.getLogger("mqbroker_client.aio.producers")

Given = ParamSpec("Given")
Found = TypeVar("Found")


async def blocking(run: Callable[Given, Found], *given: Given.args, **more: Given.kwargs) -> Found:
    """The result of a function that may block and therefore runs in a thread."""
    return await asyncio.to_thread(run, *given, **more)


def send_later(broker: AsyncBroker, call: Call[Any]) -> None:
    """Send a call in the background; a failure is only logged and counted."""

    async def send() -> None:
        try:
            await broker.do(call)
        except Exception as error:  # noqa: BLE001 a hook that forbids a call may raise any error
            broker.lost += 1
            log.warning("%s was not sent (%s): %s", call.what, fate(call), error)

    if not broker.do_later(send):
        broker.lost += 1
        log.warning("%d calls wait already, %s is not sent: %s", MOST_WAITING, call.what, fate(call))


def apart(broker: AsyncBroker) -> AsyncBroker:
    """The same broker: a long poll of a task needs no separate connection, because a stop cancels the task."""
    return broker


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """Pause; a stop cancels the task."""
    await asyncio.sleep(seconds)
