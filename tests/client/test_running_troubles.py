"""A consumer that runs survives what its handlers raise, and leaves nothing of itself behind."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mqbroker_client import Broker, Consumer, Delivery, Redeliver
from mqbroker_client.aio import AsyncBroker, AsyncConsumer

from tests.broker.polling import eventually
from tests.client.answers import ENTRY
from tests.client.servers import Answer, Asked, ScriptedServer, Silence, scripted
from tests.client.test_running import KINDS, Run

SETTLED = Answer(200, {"results": [{"receipt_handle": "receipt-1", "status": 200}]})


class Group:
    """Answers the first receives, `messages` of them, with one message each, and later ones with silence."""

    def __init__(self, messages: int = 1) -> None:
        self.left = messages

    def __call__(self, asked: Asked) -> Answer | Silence:
        if not asked.path.endswith("/receive"):
            return SETTLED
        self.left -= 1
        return Answer(200, {"messages": [ENTRY]}) if self.left >= 0 else Silence()


def settled(server: ScriptedServer) -> list[tuple[str, Any]]:
    """The verbs with which messages were settled, and their reasons."""
    found = [(asked.path.rpartition("/")[2], (asked.body or {}).get("reason")) for asked in server.asked]
    return [one for one in found if one[0] in ("ack", "nack")]


def not_settled_by(raised: BaseException) -> Callable[[Delivery], None]:
    """A handler that raises this for the first message, and handles the others."""
    left = [raised]

    def handle(delivery: Delivery) -> None:
        if left:
            raise left.pop()

    return handle


@pytest.mark.usefixtures("nothing_logged")
@KINDS
def test_a_reason_that_is_no_text_is_sent_escaped(kind: str) -> None:
    with scripted(Group(2)) as server:
        run = Run(kind, server.url, "coupons", "orders", not_settled_by(OSError("no \udcff")), ordered=False)
        run.thread.start()
        eventually(lambda: len(settled(server)) == 2)
        run.end()

    assert sorted(settled(server)) == [("ack", None), ("nack", "OSError: no \\udcff")]


@KINDS
def test_a_delay_that_is_no_number_ends_no_thread(kind: str) -> None:
    with scripted(Group(2)) as server:
        handler = not_settled_by(Redeliver(float("nan"), "soon"))
        run = Run(kind, server.url, "coupons", "orders", handler, ordered=False, concurrency=1)
        run.thread.start()
        eventually(lambda: settled(server))
        run.end()

    assert settled(server) == [("ack", None)]


async def coroutine_function(delivery: Delivery) -> None:
    raise AssertionError("no event loop runs it")


def generator_function(delivery: Delivery) -> Iterator[None]:
    yield


@pytest.mark.usefixtures("nothing_logged")
@pytest.mark.parametrize("handler", [coroutine_function, generator_function])
def test_what_a_thread_cannot_run_is_nacked_with_the_way_out(handler: Callable[[Delivery], object]) -> None:
    with scripted(Group()) as server:
        run = Run("threads", server.url, "coupons", "orders", handler, ordered=False)
        run.thread.start()
        eventually(lambda: settled(server))
        run.end()

    [(verb, reason)] = settled(server)
    assert (verb, reason.partition(": ")[2]) == (
        "nack",
        f"the handler returned a {handler.__name__.removesuffix('_function')} and nothing of it has run: "
        "give a plain function, or run it by AsyncConsumer",
    )


class Halt(BaseException):
    """Ends a program."""


@KINDS
def test_what_ends_a_program_nacks_and_ends_the_run(kind: str) -> None:
    found: list[BaseException] = []

    def run_until_raised(run: Run) -> None:
        try:
            run._run(run.work)
        except Halt as error:
            found.append(error)

    with scripted(Group()) as server:
        run = Run(kind, server.url, "coupons", "orders", not_settled_by(Halt("now")), ordered=False)
        run.thread = threading.Thread(target=run_until_raised, args=(run,))
        run.thread.start()
        run.thread.join(120)

    assert [str(error) for error in found] == ["now"]
    assert settled(server) == [("nack", "Halt: now")]


async def test_a_handler_that_waited_for_a_cancelled_task_nacks() -> None:
    async def handle(delivery: Delivery) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    with scripted(Group()) as server:
        async with AsyncBroker(server.url, "mq_key") as broker:
            running = asyncio.create_task(AsyncConsumer(broker, "coupons").run("orders", handle, ordered=False))
            await asyncio.to_thread(eventually, lambda: settled(server))
            running.cancel()
            await asyncio.wait([running])

    assert settled(server) == [("nack", "CancelledError: ")]


async def test_a_run_that_is_cancelled_twice_leaves_no_task_behind() -> None:
    began = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        began.set()
        await asyncio.sleep(60)

    with scripted(Group()) as server:
        before = asyncio.all_tasks()
        broker = AsyncBroker(server.url, "mq_key")
        running = asyncio.create_task(AsyncConsumer(broker, "coupons").run("orders", handle, ordered=False))
        await began.wait()
        running.cancel()
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.wait([running])
        await broker.close()
        left = asyncio.all_tasks() - before
        if left:
            await asyncio.wait(left, timeout=1)

    assert asyncio.all_tasks() - before == set()


def test_a_stop_without_time_for_handlers_ends_the_long_poll_all_the_same() -> None:
    with scripted(Group(0)) as server:
        stop = threading.Event()
        with Broker(server.url, "mq_key") as broker:
            run = threading.Thread(
                target=lambda: Consumer(broker, "coupons").run(
                    "orders", print, ordered=False, stop=stop, stop_seconds=0
                )
            )
            run.start()
            server.wait_for(requests=1)
            stop.set()
            run.join(120)
        eventually(lambda: not [one for one in threading.enumerate() if one.name == "receive orders for coupons"])
