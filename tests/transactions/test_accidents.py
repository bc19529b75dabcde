"""The four accidents that every user asks about, and the reference case of 120 messages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from uuid import UUID

import pytest
from aiohttp import web
from mqbroker_client import (
    Broker,
    BrokerError,
    CheckListener,
    Consumer,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
    Retry,
    TransactionProducer,
)
from mqbroker_client.core.ids import uuid7

from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import Asked, ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.proxy import LossyProxy
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import ended, received_until_empty
from tests.broker.wire import Wire

ONCE = Retry(tries=1, seconds=10)
COMMIT, ROLLBACK = LocalTransactionState.COMMIT, LocalTransactionState.ROLLBACK


@dataclass
class OrderBook:
    """The order service's own records: an order is paid by its local transaction, or it is not."""

    paid: set[bytes] = field(default_factory=set)
    may_pay: bool = True
    meanwhile: Callable[[], None] = lambda: None

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState | None:
        if not self.may_pay:
            return ROLLBACK
        self.paid.add(half.body)
        self.meanwhile()
        return COMMIT

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        return COMMIT if half.body in self.paid else ROLLBACK


@dataclass
class OrderService:
    """An order service behind a network that may lose what it sends, or what it is answered."""

    book: OrderBook
    network: LossyProxy
    transactions: TransactionProducer

    def pay(self, topic: str, body: bytes, transaction_id: UUID | None = None) -> None:
        self.transactions.send_message_in_transaction(Message(topic, body), transaction_id=transaction_id)


@pytest.fixture
def order_service(broker: RunningBroker, endpoint: ProducerEndpoint) -> Iterator[OrderService]:
    book, group = OrderBook(), characters.name("order-service")
    secret = register(broker, group, endpoint.url)
    listener = CheckListener(book.check_local_transaction, [secret])

    async def answer(asked: Asked) -> web.StreamResponse:
        reply = listener.reply({name.lower(): value for name, value in asked.headers.items()}, asked.body)
        assert reply.status == HTTPStatus.OK
        return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)

    endpoint.replies(answer)
    with LossyProxy(broker.url) as network, Broker(network.url, API_KEY, retry=ONCE) as way:
        transactions = TransactionProducer(Producer(way, group), book, half_retry=ONCE)
        yield OrderService(book, network, transactions)


def test_a_half_message_that_was_not_stored_runs_no_local_transaction(
    order_service: OrderService, producer: Producer, consumer: Consumer, orders: str
) -> None:
    order_service.network.loses_requests = True

    with pytest.raises(BrokerError, match="no answer from"):
        order_service.pay(orders, b"order 1")

    producer.send(orders, b"the next order")
    assert order_service.book.paid == set()
    assert bodies(consumer.receive(orders)) == [b"the next order"]


def test_a_local_transaction_that_fails_rolls_its_half_message_back(
    order_service: OrderService, producer: Producer, consumer: Consumer, orders: str
) -> None:
    order_service.book.may_pay = False

    order_service.pay(orders, b"order 1")

    producer.send(orders, b"the next order")
    assert bodies(consumer.receive(orders)) == [b"the next order"]


def test_a_half_message_whose_answer_was_lost_is_rolled_back_at_once(
    order_service: OrderService, wire: Wire, consumer: Consumer, orders: str
) -> None:
    order_service.network.loses_answers = True

    with pytest.raises(BrokerError, match="no answer from"):
        order_service.pay(orders, b"order 1")

    listed = f"/v1/transactions?state=ROLLED_BACK&producer_group={order_service.transactions.producer.group}"
    [decided] = eventually(lambda: wire.get(listed).document["results"])
    assert order_service.book.paid == set()
    assert (decided["decided_by"], decided["check_times"]) == ("producer", 0)
    assert consumer.receive(orders) == []


def test_a_half_message_whose_answer_was_lost_is_rolled_back_by_its_check(
    order_service: OrderService, endpoint: ProducerEndpoint, wire: Wire, consumer: Consumer, orders: str
) -> None:
    order_service.network.loses_answers = True

    # The service may try again under the id that it gave, so its client leaves the end to the check.
    with pytest.raises(BrokerError, match="no answer from"):
        order_service.pay(orders, b"order 1", uuid7())

    [asked] = eventually(lambda: endpoint.asked)
    decided = eventually(partial(ended, wire, asked.transactions[0]["transaction_id"]))
    assert order_service.book.paid == set()
    assert (decided["state"], decided["history"][-1]["by"]) == ("ROLLED_BACK", "check")
    assert consumer.receive(orders) == []


def test_a_commit_that_was_lost_is_made_good_by_its_check(
    order_service: OrderService, endpoint: ProducerEndpoint, wire: Wire, consumer: Consumer, orders: str
) -> None:
    def loses_the_network() -> None:
        order_service.network.loses_requests = True

    order_service.book.meanwhile = loses_the_network

    order_service.pay(orders, b"order 1")

    [asked] = eventually(lambda: endpoint.asked)
    decided = eventually(partial(ended, wire, asked.transactions[0]["transaction_id"]))
    assert order_service.book.paid == {b"order 1"}
    assert (decided["state"], decided["history"][-1]["by"]) == ("COMMITTED", "check")
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_of_120_messages_consumers_see_exactly_the_committed_ones_each_once(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, endpoint: ProducerEndpoint, orders: str
) -> None:
    register(broker, producer.group, endpoint.url, max_batch=50)
    fates = ["COMMIT now", "ROLLBACK now", "COMMIT by check", "ROLLBACK by check", "UNKNOWN for ever"]
    fate_of = {f"order {number}": fates[number % 5] for number in range(120)}
    endpoint.replies(states(lambda entry: fate_of[entry["body"]].split()[0]))
    group = {"producer_group": producer.group}

    halves = wire.bulk(*({"op": "half", "topic": orders, "body": body, **group} for body in fate_of))
    id_of = {body: half["transaction_id"] for body, half in zip(fate_of, halves, strict=True)}
    now = {body: fate.split()[0] for body, fate in fate_of.items() if fate.endswith("now")}
    ends = wire.bulk(
        *({"op": "end", "transaction_id": id_of[body], "state": state, **group} for body, state in now.items())
    )

    by_check = [body for body, fate in fate_of.items() if fate.endswith("by check")]
    eventually(lambda: all(ended(wire, id_of[body]) for body in by_check))
    committed = sorted(body.encode() for body, fate in fate_of.items() if fate.startswith("COMMIT"))
    assert {end["status"] for end in ends} == {200}
    assert sorted(bodies(received_until_empty(consumer, orders))) == committed
    assert {body for body in fate_of if not ended(wire, id_of[body])} == {
        body for body, fate in fate_of.items() if fate == "UNKNOWN for ever"
    }
