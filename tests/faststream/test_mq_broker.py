"""`MqBroker` of FastStream on a running broker: each message is handled, and what comes of it goes with its ack."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from faststream.exceptions import FeatureNotSupportedException, IncorrectState, NackMessage
from faststream.params import Context
from faststream.specification import AsyncAPI
from mqbroker_client import Consumer, Message, Producer, Redeliver
from mqbroker_client.faststream import AckPolicy, MqBroker, MqMessage, MqResponse, MqRouter
from mqbroker_client.sqlalchemy import Outbox
from pydantic import BaseModel
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.broker import characters
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker


class Order(BaseModel):
    """What a handler takes."""

    item: str
    pieces: int = 1


@pytest.fixture
def mq(broker: RunningBroker) -> MqBroker:
    """A broker of FastStream that is not connected."""
    return MqBroker(broker.url, API_KEY, producer_group=characters.name("shop"), logger=None)


@pytest.fixture
def group() -> str:
    return characters.name("coupons")


@asynccontextmanager
async def started(mq: MqBroker) -> AsyncIterator[MqBroker]:
    """It runs."""
    async with mq:
        await mq.start()
        yield mq


async def found(queue: "asyncio.Queue[Any]", count: int = 1) -> list[Any]:
    """The next results of handlers."""
    return [await asyncio.wait_for(queue.get(), at_this_load(20)) for _ in range(count)]


def test_a_message_is_handled_with_its_type_its_headers_and_its_context(mq: MqBroker, orders: str, group: str) -> None:
    handled: asyncio.Queue[Any] = asyncio.Queue()

    @mq.subscriber(orders, group=group, filter="paid")
    async def handle(order: Order, message: Annotated[MqMessage, Context("message")]) -> None:
        await handled.put((order, message.headers["region"], message.correlation_id, message.raw_message.message.tags))

    async def run() -> Any:
        async with started(mq):
            await mq.publish({"item": "cup"}, orders, tags="open")
            await mq.publish(
                Order(item="tea"), orders, tags="paid", properties={"region": "eu"}, correlation_id="order-1"
            )
            return await found(handled)

    assert asyncio.run(run()) == [(Order(item="tea"), "eu", "order-1", "paid")]


def test_what_a_handler_returns_is_published_with_the_ack(
    broker: RunningBroker, mq: MqBroker, orders: str, coupons: str, group: str
) -> None:
    """A handler that fails behind its publisher has published nothing."""
    handled: asyncio.Queue[Any] = asyncio.Queue()
    attempts = 0

    @mq.publisher(coupons, tags="coupon")
    @mq.subscriber(orders, group=group)
    async def give(order: Order) -> Order:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise Redeliver(0)
        return Order(item=f"coupon for {order.item}")

    @mq.subscriber(coupons, group=group)
    async def note(coupon: Order) -> None:
        await handled.put(coupon.item)

    async def run() -> Any:
        async with started(mq):
            await mq.publish(Order(item="tea"), orders)
            return await found(handled)

    assert asyncio.run(run()) == ["coupon for tea"]
    assert attempts == 2
    assert Consumer(broker.client(), group).receive(orders) == []
    [stored] = Consumer(broker.client(), characters.name("audit")).receive(coupons)
    assert (stored.message.tags, json.loads(stored.body)["item"]) == ("coupon", "coupon for tea")


@pytest.mark.parametrize(
    ("policy", "raises", "again"),
    [
        (AckPolicy.NACK_ON_ERROR, ValueError("no stock"), True),
        (AckPolicy.NACK_ON_ERROR, NackMessage(), True),
        (AckPolicy.REJECT_ON_ERROR, ValueError("no stock"), False),
        (AckPolicy.ACK, ValueError("no stock"), False),
        (AckPolicy.MANUAL, None, True),
    ],
)
def test_a_message_that_is_not_done_comes_again_as_the_policy_says(
    broker: RunningBroker,
    mq: MqBroker,
    orders: str,
    group: str,
    policy: AckPolicy,
    raises: Exception | None,
    again: bool,
) -> None:
    handled: asyncio.Queue[Any] = asyncio.Queue()
    broker.client().call(
        "PUT", f"/v1/consumer-groups/{group}", {"retry_policy": {"kind": "table", "delay_seconds": [0]}}
    )

    @mq.subscriber(orders, group=group, ack_policy=policy)
    async def handle(body: str, message: Annotated[MqMessage, Context("message")]) -> None:
        attempt = message.raw_message.delivery_attempt
        await handled.put((body, attempt))
        if attempt > 1:
            await message.ack()
        elif raises is not None:
            raise raises

    async def run() -> Any:
        async with started(mq):
            await mq.publish("first", orders)
            seen = await found(handled)
            await mq.publish("second", orders)
            return [*seen, *await found(handled, 2 if again else 1)]

    seen = asyncio.run(run())

    assert seen[0] == ("first", 1)
    assert (("first", 2) in seen) == again


def test_a_reply_goes_where_the_message_asks_for_it(mq: MqBroker, orders: str, coupons: str, group: str) -> None:
    handled: asyncio.Queue[Any] = asyncio.Queue()

    @mq.subscriber(orders, group=group)
    async def price(item: str) -> MqResponse:
        return MqResponse(f"{item}: 3 EUR", headers={"currency": "EUR"}, tags="price")

    @mq.subscriber(coupons, group=group, filter="price")
    async def answer(body: str, message: Annotated[MqMessage, Context("message")]) -> None:
        await handled.put((body, message.headers["currency"], message.correlation_id))

    async def run() -> Any:
        async with started(mq):
            await mq.publish("tea", orders, reply_to=coupons, correlation_id="question-1")
            with pytest.raises(FeatureNotSupportedException, match="answers no request"):
                await mq.request("tea", orders)
            return await found(handled)

    assert asyncio.run(run()) == [("tea: 3 EUR", "EUR", "question-1")]


def test_properties_of_another_producer_are_headers_and_command_nothing(
    broker: RunningBroker, mq: MqBroker, orders: str, coupons: str, group: str
) -> None:
    handled: asyncio.Queue[Any] = asyncio.Queue()
    given = {"reply_to": coupons, "Reply-To": coupons, "content_type": "application/json", "correlation_id": "theirs"}

    @mq.subscriber(orders, group=group)
    async def handle(body: Any, message: Annotated[MqMessage, Context("message")]) -> str:
        await handled.put((body, message.headers, message.reply_to, message.correlation_id))
        return "an answer"

    producer = Producer(broker.client(), characters.name("shop"))
    message = Message(orders, b"no JSON", properties=given)
    producer.send_message(message)

    async def run() -> Any:
        async with started(mq):
            [first] = await found(handled)
            # A reply would go with the ack, which is done once the next one is handled.
            await mq.publish("next", orders)
            await found(handled)
            return first

    assert asyncio.run(run()) == (b"no JSON", given, "", str(message.message_id))
    assert Consumer(broker.client(), characters.name("audit")).receive(coupons) == []


@pytest.mark.parametrize("name", ["faststream-reply-to", "faststream-content-type", "faststream-correlation-id"])
@pytest.mark.parametrize("way", ["headers", "properties"])
def test_a_header_of_fast_streams_own_is_refused(mq: MqBroker, orders: str, name: str, way: str) -> None:
    async def run() -> None:
        async with mq:
            fields: Any = {way: {name: "x"}}
            await mq.publish("tea", orders, **fields)

    with pytest.raises(ValueError, match=f"{name} is no header of yours"):
        asyncio.run(run())


def test_with_a_session_a_message_is_sent_with_its_transaction_or_not_at_all(
    broker: RunningBroker, orders: str, group: str, tmp_path: Any
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.sqlite3'}")
    outbox = Outbox(Producer(broker.client(), characters.name("shop")), engine)
    outbox.barrier.create_table()
    sessions = sessionmaker(engine)
    outbox.listen(sessions)
    mq = MqBroker(broker.url, API_KEY, outbox=outbox, logger=None)
    handled: asyncio.Queue[Any] = asyncio.Queue()

    @mq.subscriber(orders, group=group)
    async def handle(body: str) -> None:
        await handled.put(body)

    async def run() -> Any:
        async with started(mq):
            with sessions() as session:
                await mq.publish("rolled back", orders, session=session)
                session.rollback()
            with sessions.begin() as session:
                await mq.publish("committed", orders, session=session)
            await mq.publish("after", orders)
            return await found(handled, 2)

    assert sorted(asyncio.run(run())) == ["after", "committed"]


def test_one_message_at_a_time_is_settled_by_who_asks_for_it(
    broker: RunningBroker, mq: MqBroker, orders: str, group: str
) -> None:
    subscriber = mq.subscriber(orders, group=group)

    async def run() -> Any:
        async with started(mq):
            assert await mq.ping(5)
            assert await subscriber.get_one(timeout=0) is None
            await mq.publish_batch("one", "two", topic=orders)
            first = await subscriber.get_one()
            assert first is not None
            await first.ack()
            async for second in subscriber:
                await second.nack()
                break
            return await first.decode(), await second.decode()

    assert asyncio.run(run()) == ("one", "two")
    assert asyncio.run(mq.ping()) is False


def test_a_stop_waits_for_the_handler_and_gives_back_what_none_has_begun(
    broker: RunningBroker, mq: MqBroker, orders: str, group: str
) -> None:
    began, done = asyncio.Event(), []

    @mq.subscriber(orders, group=group)
    async def handle(body: str) -> None:
        began.set()
        await asyncio.sleep(0.3)
        done.append(body)

    async def run() -> None:
        async with mq:
            await mq.publish_batch("one", "two", "three", topic=orders)
            await mq.start()
            await asyncio.wait_for(began.wait(), at_this_load(20))

    asyncio.run(run())

    left = Consumer(broker.client(), group).receive(orders)
    assert sorted([*done, *(one.body.decode() for one in left)]) == ["one", "three", "two"]
    assert done


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


def test_an_application_has_routers_and_a_page_of_asyncapi(mq: MqBroker, orders: str, coupons: str) -> None:
    router = MqRouter(prefix="eu.")

    @router.publisher(coupons)
    @router.subscriber(orders, group="coupons", description="Gives a coupon.")
    async def give(order: Order) -> Order:
        return order

    mq.include_router(router)
    page = json.loads(AsyncAPI(mq).to_specification().to_json())

    addresses = {channel["address"] for channel in page["channels"].values()}
    assert addresses == {f"eu.{orders}", f"eu.{coupons}"}
    assert "Order" in page["components"]["schemas"]


def test_a_session_without_its_outbox_is_refused(mq: MqBroker, orders: str) -> None:
    async def run() -> None:
        async with mq:
            await mq.publish("tea", orders, session=Session())

    with pytest.raises(IncorrectState, match="session= needs the outbox"):
        asyncio.run(run())
