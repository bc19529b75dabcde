"""`MqBroker` of FastStream on a running broker: each message is handled, and what comes of it goes with its ack."""

import asyncio
import json
from typing import Annotated, Any

import pytest
from faststream.exceptions import FeatureNotSupportedException, IncorrectState, NackMessage
from faststream.params import Context
from faststream.specification import AsyncAPI
from mqbroker_client import Consumer, Producer, Redeliver
from mqbroker_client.contrib.faststream import AckPolicy, MqBroker, MqMessage, MqResponse, MqRouter
from mqbroker_client.contrib.sqlalchemy import Outbox
from pydantic import BaseModel
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from tests.broker import characters
from tests.broker.polling import at_this_load
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.faststream.conftest import found, started


class Order(BaseModel):
    """What a handler takes."""

    item: str
    pieces: int = 1


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

    left = received_until_empty(Consumer(broker.client(), group), orders)
    assert sorted([*done, *(one.body.decode() for one in left)]) == ["one", "three", "two"]
    assert done


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
