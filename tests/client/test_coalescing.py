"""Calls of threads that come while another one is under way go together, and each thread gets its own answer."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from mqbroker_client import Broker, Consumer, LocalTransactionState, Message, Producer, Retry, Sent
from mqbroker_client.core import errors

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.client.answers import COMMITTED, PREPARED, SENT, problem
from tests.client.servers import Answer, Asked, HangUp, ScriptedServer, Silence, busy, scripted

WITHIN_SECONDS = 20
Fields = dict[str, object]


class Gate:
    """Holds the first request until it is opened, so that other calls come meanwhile."""

    def __init__(self, reply: Callable[[Asked], Answer | HangUp]) -> None:
        self.reply = reply
        self.opened = threading.Event()

    def __call__(self, asked: Asked) -> Answer | HangUp:
        assert self.opened.wait(WITHIN_SECONDS)
        return self.reply(asked)


def results(asked: Asked) -> Answer:
    """The answer to a request: to each operation of a bulk, that of its message."""
    if asked.path != "/v1/bulk":
        return one(asked.body)
    return bulk_of(one(each) for each in asked.body["operations"])


def bulk_of(answers: Iterable[Answer]) -> Answer:
    return Answer(200, {"results": [{"status": answer.status, **cast(Fields, answer.body)} for answer in answers]})


def one(operation: dict[str, str]) -> Answer:
    """Refused where the body asks for that."""
    if operation.get("body") == "refused":
        return problem(409, "message_id_reused", "Another body has this id.")
    if "state" in operation:
        return Answer(200, COMMITTED.body)
    if "producer_group" in operation:
        return PREPARED
    return Answer(201, cast(Fields, SENT.body) | {"message_id": operation["message_id"]})


@contextmanager
def calls_behind_one(server: ScriptedServer, calls: Sequence[Callable[[], object]]) -> Iterator[list[Future[object]]]:
    """Runs the calls in threads of their own, the first one before the others; the server holds its request."""
    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(calls[0])]
        server.wait_for(requests=1)
        futures += [threads.submit(call) for call in calls[1:]]
        yield futures


def all_wait(broker: Broker, count: int) -> None:
    eventually(lambda: broker.waiting() == count)


def producer_of(server: ScriptedServer, **limits: Any) -> Producer:
    return Producer(Broker(server.url, "mq_key", **limits), "shop")


def paths(server: ScriptedServer) -> list[str]:
    return [asked.path for asked in server.asked]


def test_a_caller_that_finds_nothing_under_way_sends_by_itself() -> None:
    with scripted(results) as server:
        producer = producer_of(server)
        producer.begin("orders", b"1").commit()
        producer.send("orders", b"2")

    assert [path.split("/")[2] for path in paths(server)] == ["transactions", "transactions", "messages"]


def test_calls_that_come_meanwhile_share_one_request_and_each_gets_its_own_answer() -> None:
    messages = [Message("orders", body) for body in (b"0", b"1", b"refused", b"3")]
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        calls = [lambda message=message: producer.send_message(message) for message in messages]
        with calls_behind_one(server, calls) as futures:
            all_wait(producer.broker, 3)
            gate.opened.set()
        found = [future.exception() or future.result() for future in futures]

    assert paths(server) == ["/v1/messages", "/v1/bulk"]
    assert {each["op"] for each in server.asked[1].body["operations"]} == {"send"}
    assert isinstance(found[2], errors.MessageIdReused)
    assert [sent.message_id for sent in found if isinstance(sent, Sent)] == [
        message.message_id for message in messages if message.body != b"refused"
    ]


def test_a_half_and_its_end_never_share_a_request() -> None:
    transaction_id = uuid4()
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        calls: list[Callable[[], object]] = [
            lambda: producer.send("orders", b"first"),
            lambda: producer.begin("orders", b"half", transaction_id=transaction_id),
            lambda: producer.end(transaction_id, LocalTransactionState.COMMIT),
            lambda: producer.end(uuid4(), LocalTransactionState.COMMIT),
        ]
        with calls_behind_one(server, calls[:1]), ThreadPoolExecutor(3) as threads:
            for count, call in enumerate(calls[1:], 1):
                threads.submit(call)
                all_wait(producer.broker, count)
            gate.opened.set()

    assert paths(server)[:2] == ["/v1/messages", "/v1/transactions"]
    assert [each["op"] for each in server.asked[2].body["operations"]] == ["end", "end"]


def test_a_request_has_at_most_4_mib() -> None:
    bodies = [b"x" * size for size in (1, 3_000_000, 1_000_000, 500_000)]
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server, compression=None)
        with calls_behind_one(server, [lambda: producer.send("orders", bodies[0])]), ThreadPoolExecutor(3) as threads:
            for count, body in enumerate(bodies[1:], 1):
                threads.submit(producer.send, "orders", body)
                all_wait(producer.broker, count)
            gate.opened.set()

    assert paths(server) == ["/v1/messages", "/v1/bulk", "/v1/messages"]
    assert [len(each["body"]) for each in server.asked[1].body["operations"]] == [3_000_000, 1_000_000]


def test_a_request_has_at_most_1000_operations() -> None:
    """One thread can bring many calls: those of a program that ends transactions without waiting."""
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        with calls_behind_one(server, [lambda: producer.send("orders", b"0")]), ThreadPoolExecutor(1_010) as threads:
            for _ in range(1_010):
                threads.submit(producer.send, "orders", b"1")
            all_wait(producer.broker, 1_010)
            gate.opened.set()

    assert next(len(asked.body["operations"]) for asked in server.asked if asked.path == "/v1/bulk") == 1_000


def test_what_a_shared_request_was_too_busy_for_is_repeated_alone_with_the_same_id() -> None:
    gate = Gate(results)

    def busy_for_all(asked: Asked) -> Answer:
        return bulk_of(busy() for _ in asked.body["operations"])

    with scripted(gate, busy_for_all, results) as server:
        producer = producer_of(server)
        with calls_behind_one(server, [lambda: producer.send("orders", b"x")] * 3) as futures:
            all_wait(producer.broker, 2)
            gate.opened.set()
        assert all(future.result() for future in futures)

    assert paths(server) == ["/v1/messages", "/v1/bulk", "/v1/messages", "/v1/messages"]
    assert {each["message_id"] for each in server.asked[1].body["operations"]} == {
        asked.body["message_id"] for asked in server.asked[2:]
    }


NO_RESULTS = Answer(200, {"results": [{}, "neither"]})


@pytest.mark.parametrize("failure", [HangUp(), busy(), problem(404, "not_found", "There is no such path."), NO_RESULTS])
def test_a_shared_request_that_fails_as_a_whole_is_repeated_call_by_call(failure: Answer | HangUp) -> None:
    gate = Gate(results)
    with scripted(gate, failure, results) as server:
        producer = producer_of(server)
        with calls_behind_one(server, [lambda: producer.send("orders", b"x")] * 3) as futures:
            all_wait(producer.broker, 2)
            gate.opened.set()
        assert all(future.result() for future in futures)

    assert paths(server) == ["/v1/messages", "/v1/bulk", "/v1/messages", "/v1/messages"]


def test_a_caller_does_not_wait_beyond_its_own_deadline_for_the_one_before() -> None:
    with scripted(Silence(), results) as server:
        producer = producer_of(server, retry=Retry(tries=2, seconds=30))
        with calls_behind_one(server, [lambda: producer.send("orders", b"slow")]) as [slow]:
            begun = producer.begin_messages([Message("orders", b"half")], retry=Retry(tries=2, seconds=2))
            assert not slow.done()
            server.closing.set()

    assert begun.state == "PREPARED"
    assert paths(server)[:2] == ["/v1/messages", "/v1/transactions"]


def test_a_caller_that_left_holds_up_none_of_those_behind_it() -> None:
    """Each thread with an answer wakes the next one: were one asleep for ever, the next would wait to its deadline."""
    gate, left = Gate(results), threading.Event()

    def answered_late(asked: Asked) -> Answer:
        assert left.wait(WITHIN_SECONDS)
        return results(asked)

    with scripted(gate, answered_late, results) as server:
        producer = producer_of(server, retry=Retry(tries=2, seconds=200), timeout_seconds=100)
        message = Message("orders", b"half")
        with calls_behind_one(server, [lambda: producer.send("orders", b"x")]), ThreadPoolExecutor(3) as threads:
            others = [threads.submit(producer.send, "orders", b"before")]
            all_wait(producer.broker, 1)
            leaving = threads.submit(producer.begin_messages, [message], retry=Retry(tries=2, seconds=2))
            all_wait(producer.broker, 2)
            others.append(threads.submit(producer.send, "orders", b"behind"))
            all_wait(producer.broker, 3)
            gate.opened.set()
            assert leaving.result().state == "PREPARED"
            left.set()
            assert [future.result(WITHIN_SECONDS).topic for future in others] == ["orders", "orders"]


def test_coalescing_can_be_turned_off() -> None:
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server, coalescing=False)
        with calls_behind_one(server, [lambda: producer.send("orders", b"x")] * 3) as futures:
            server.wait_for(requests=3)
            gate.opened.set()
        assert all(future.result() for future in futures)

    assert paths(server) == ["/v1/messages"] * 3


@pytest.mark.parametrize("longest_pause", [0, 0.004], ids=["one after the other", "with pauses"])
def test_transactions_of_many_threads_are_each_committed_once(
    broker: RunningBroker, orders: str, longest_pause: float
) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)

    def work(number: int) -> list[UUID]:
        chance = Random(number)
        committed = []
        for place in range(20):
            committed.append(commit(b"%d/%d" % (number, place)))
            # Some come while the answered ones are waited for, some after it.
            time.sleep(chance.uniform(0, longest_pause))
        return committed

    def commit(body: bytes) -> UUID:
        transaction = producer.begin(orders, body)
        ended = transaction.commit()
        assert (ended.transaction_id, ended.state) == (transaction.transaction_id, "COMMITTED")
        return transaction.message_id

    with ThreadPoolExecutor(16) as threads:
        sent = [message_id for ids in threads.map(work, range(16)) for message_id in ids]
    received: list[UUID] = []
    while found := consumer.receive(orders):
        received += [delivery.message.message_id for delivery in found]
        consumer.ack(found)

    assert sorted(received) == sorted(sent)
