"""The classes for event loops do what those for threads do: the same requests, limits, coalescing and forks."""

import asyncio
import gc
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import ClientSession
from mqbroker_client import HalfMessage, LocalTransactionState, Message, Retry
from mqbroker_client.aio import (
    AsyncAdmin,
    AsyncBroker,
    AsyncCheckPoller,
    AsyncConsumer,
    AsyncProducer,
    AsyncTransactionProducer,
)
from mqbroker_client.barrier import Barrier
from mqbroker_client.core import errors
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.states import Outcome

from tests.broker.polling import at_this_load
from tests.broker.running import API_KEY, RunningBroker
from tests.client.answers import CHECK, COMMITTED, PREPARED, SENT, TRANSACTION_ID, problem
from tests.client.servers import Answer, HangUp, ScriptedServer, Silence, Stall, busy, scripted
from tests.client.test_coalescing import Gate, bulk_of, paths, results


def producer_of(server: ScriptedServer, **limits: Any) -> AsyncProducer:
    return AsyncProducer(AsyncBroker(server.url, "mq_key", **limits), "shop")


async def asked(server: ScriptedServer, requests: int) -> None:
    await asyncio.to_thread(server.wait_for, requests)


async def test_long_bodies_and_long_answers_are_read(broker: RunningBroker, orders: str) -> None:
    bodies = [bytes([number]) * 10_000 for number in range(16)]
    async with AsyncBroker(broker.url, API_KEY) as client, AsyncBroker(broker.url, API_KEY, compression=None) as plain:
        await AsyncProducer(client, orders).send_batch(orders, [Message(orders, body) for body in bodies])
        await AsyncProducer(plain, orders).send_batch(orders, [Message(orders, body) for body in bodies])
        found = [
            delivery.body
            for _ in range(2)
            for delivery in await AsyncConsumer(client, orders).receive(orders, max_messages=16, wait_seconds=5)
        ]

    assert sorted(found) == sorted(bodies * 2)


async def test_a_transaction_is_begun_committed_received_and_acked(broker: RunningBroker, orders: str) -> None:
    async with AsyncBroker(broker.url, API_KEY) as client:
        producer, consumer = AsyncProducer(client, orders), AsyncConsumer(client, orders)
        transaction = await producer.begin(orders, b"order 1", keys="abc")
        assert await consumer.receive(orders) == []
        ended = await transaction.commit()
        [delivery] = await consumer.receive(orders, wait_seconds=5)
        [settled] = await consumer.ack([delivery])

    assert (ended.state, delivery.body, delivery.message.keys) == ("COMMITTED", b"order 1", ("abc",))
    assert settled.status == 200


async def test_a_program_makes_its_topic_groups_and_endpoint(broker: RunningBroker, orders: str) -> None:
    async with AsyncBroker(broker.url, API_KEY) as client:
        admin = AsyncAdmin(client)
        topic = await admin.create_topic(orders, queues=2)
        group = await admin.create_consumer_group(orders, ordered=True)
        endpoint = await admin.register_endpoint(orders, "http://127.0.0.1:9/checks", max_batch=8)
        listed = await client.call("GET", f"/v1/producer-groups/{orders}/endpoints")
        await admin.delete_endpoint(orders, endpoint.id)
        left = await client.call("GET", f"/v1/producer-groups/{orders}/endpoints")

    assert (topic["queues"], group["ordered"], endpoint.secret[:6]) == (2, True, "whsec_")
    assert [(found["id"], found["max_batch"]) for found in listed["results"]] == [(int(endpoint.id), 8)]
    assert left["results"] == []


@pytest.mark.parametrize("failure", [HangUp(), busy("0.01"), problem(429, "rate_limited", "Slower.")])
async def test_what_passes_is_repeated_with_the_same_ids(failure: Answer | HangUp) -> None:
    with scripted(failure, SENT) as server:
        producer = producer_of(server)
        await producer.send("orders", b"order 1")
        await producer.broker.close()

    first, second = server.asked
    assert (first.body, first.headers["x-request-id"]) == (second.body, second.headers["x-request-id"])


@pytest.mark.parametrize("failure", [Silence(), Stall()])
async def test_a_server_that_falls_silent_leaves_time_to_ask_again(failure: Silence | Stall) -> None:
    with scripted(failure, SENT) as server:
        producer = producer_of(server, retry=Retry(tries=2, seconds=3))
        began = time.monotonic()
        # Within the time of both tries, or it would raise.
        await producer.send("orders", b"order 1")
        await producer.broker.close()

    assert time.monotonic() - began > 1.4


async def test_an_answer_of_another_request_is_not_taken() -> None:
    others = Answer(201, COMMITTED.body, {"X-Request-Id": "of-another"})
    with scripted(others, SENT) as server:
        producer = producer_of(server)
        assert (await producer.send("orders", b"order 1")).queue_offset == 7
        await producer.broker.close()


async def test_tasks_that_come_meanwhile_share_one_request_and_each_gets_its_own_answer() -> None:
    messages = [Message("orders", body) for body in (b"0", b"1", b"refused", b"3")]
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        tasks = [asyncio.create_task(producer.send_message(message)) for message in messages]
        await asked(server, 1)
        gate.opened.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await producer.broker.close()

    assert paths(server) == ["/v1/messages", "/v1/bulk"]
    assert isinstance(found.pop(2), errors.MessageIdReused)
    assert [sent.message_id for sent in found if not isinstance(sent, BaseException)] == [
        message.message_id for message in messages if message.body != b"refused"
    ]


async def test_a_task_that_is_cancelled_takes_no_other_call_with_it() -> None:
    gate = Gate(results)
    with scripted(gate, results) as server:
        producer = producer_of(server)
        tasks = [asyncio.create_task(producer.send("orders", b"x")) for _ in range(4)]
        await asked(server, 1)
        tasks[1].cancel()
        gate.opened.set()
        await asyncio.wait(tasks)
        await producer.broker.close()

    assert [task.cancelled() for task in tasks] == [False, True, False, False]
    assert len(server.asked[1].body["operations"]) == 2


async def test_a_caller_cancelled_while_it_sends_lets_the_others_go_on() -> None:
    with scripted(Silence(), results) as server:
        producer = producer_of(server)
        tasks = [asyncio.create_task(producer.send("orders", b"x")) for _ in range(3)]
        await asked(server, 1)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        await producer.broker.close()
        server.closing.set()

    assert paths(server) == ["/v1/messages", "/v1/bulk"]
    assert not any(task.exception() for task in tasks[1:])


async def test_what_a_shared_request_was_too_busy_for_is_repeated_alone() -> None:
    gate = Gate(results)
    with scripted(gate, lambda asked: bulk_of(busy() for _ in asked.body["operations"]), results) as server:
        producer = producer_of(server)
        tasks = [asyncio.create_task(producer.send("orders", b"x")) for _ in range(3)]
        await asked(server, 1)
        gate.opened.set()
        await asyncio.gather(*tasks)
        await producer.broker.close()

    assert sorted(paths(server)) == ["/v1/bulk", *["/v1/messages"] * 3]


async def test_an_end_that_is_not_waited_for_is_sent_by_the_time_of_close() -> None:
    with scripted(PREPARED, COMMITTED) as server:
        producer = producer_of(server)
        transaction = await producer.begin("orders", b"1")
        await producer.end(transaction.transaction_id, LocalTransactionState.COMMIT, wait=False)
        assert len(server.asked) == 1
        await producer.broker.close()

    assert server.asked[1].body["state"] == "COMMIT"


async def test_close_beside_tasks_that_send_leaves_no_session_open() -> None:
    gate = Gate(lambda _: HangUp())
    with scripted(gate, PREPARED, COMMITTED, SENT, SENT) as server:
        producer = producer_of(server)
        trying = asyncio.create_task(producer.begin("orders", b"1"))
        await asked(server, 1)
        await producer.broker.close()
        gate.opened.set()
        transaction = await trying
        await producer.end(transaction.transaction_id, LocalTransactionState.COMMIT, wait=False)
        await producer.broker.close()
        await asyncio.gather(*(producer.send("orders", b"after it") for _ in range(2)))

    assert len(server.asked) == 5
    # By its type: to ask a proxy of what is gone whether it is an instance is an error.
    assert [found for found in gc.get_objects() if issubclass(type(found), ClientSession) and not found.closed] == []


class Books:
    """Commits what it is asked for, in its own time."""

    async def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState:
        if arg == "fail":
            raise ValueError("no money")
        return LocalTransactionState.COMMIT

    async def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState:
        await asyncio.sleep(0)
        return LocalTransactionState.COMMIT


async def test_a_producer_without_any_answer_to_checks_is_refused() -> None:
    class Forgetful:
        async def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState:
            return LocalTransactionState.COMMIT

    with pytest.raises(TypeError, match="needs a barrier, or a listener with check_local_transaction"):
        AsyncTransactionProducer(AsyncProducer(AsyncBroker("http://127.0.0.1:1", "key"), "shop"), Forgetful())


@pytest.mark.parametrize(("arg", "state", "remark"), [(1, "COMMIT", None), ("fail", "UNKNOWN", "ValueError: no money")])
async def test_a_local_transaction_is_awaited_between_half_and_end(arg: object, state: str, remark: str | None) -> None:
    with scripted(PREPARED, COMMITTED) as server:
        sender = AsyncTransactionProducer(producer_of(server), Books())
        sent = await sender.send_message_in_transaction(Message("orders", b"1"), arg)
        await sender.producer.broker.close()

    assert (sent.state, sent.remark, sent.ended) == (state, remark, True)
    assert server.asked[1].body["state"] == state


async def test_a_poller_answers_checks_and_stops_at_once() -> None:
    with scripted(Answer(200, {"transactions": [CHECK]}), COMMITTED, Silence()) as server:
        poller = AsyncCheckPoller(producer_of(server), Books().check_local_transaction)
        poller.start()
        await asked(server, 3)
        began = time.monotonic()
        await poller.stop()
        await poller.producer.broker.close()

    # Long before the 20 s of its long poll.
    assert time.monotonic() - began < at_this_load(1)
    assert server.asked[1].path == f"/v1/transactions/{TRANSACTION_ID}/end"
    assert server.asked[1].body["from_transaction_check"] is True


async def test_a_poller_gives_a_barrier_all_checks_at_once(tmp_path: Path) -> None:
    barrier = Barrier(lambda: sqlite3.connect(tmp_path / "shop"), "shop")
    barrier.create_table()
    asked_for: list[int] = []

    class Counting(Barrier):
        def answer(self, halves: Sequence[HalfMessage]) -> list[Outcome]:
            asked_for.append(len(halves))
            return super().answer(halves)

    stored_at = datetime.now(UTC).isoformat()
    checks = [CHECK | {"transaction_id": str(uuid7()), "stored_at": stored_at} for _ in range(3)]
    with scripted(Answer(200, {"transactions": checks}), COMMITTED) as server:
        poller = AsyncCheckPoller(producer_of(server), Counting(lambda: sqlite3.connect(tmp_path / "shop"), "shop"))
        assert await poller.answer_due() == 3
        await poller.producer.broker.close()

    assert asked_for == [3]
    assert [end.body["state"] for end in server.asked[1:]] == ["ROLLBACK"] * 3


async def test_a_poller_runs_a_plain_function_in_a_thread() -> None:
    found: list[UUID] = []

    def check(half: HalfMessage) -> LocalTransactionState:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        found.append(half.transaction_id)
        return LocalTransactionState.ROLLBACK

    with scripted(Answer(200, {"transactions": [CHECK]}), COMMITTED) as server:
        poller = AsyncCheckPoller(producer_of(server), check)
        assert await poller.answer_due() == 1
        await poller.producer.broker.close()

    assert found == [UUID(TRANSACTION_ID)]
    assert server.asked[1].body["state"] == "ROLLBACK"


def test_a_broker_serves_several_event_loops(broker: RunningBroker, orders: str) -> None:
    producer = AsyncProducer(AsyncBroker(broker.url, API_KEY), orders)

    async def send() -> int:
        sent = await asyncio.gather(*(producer.send(orders, b"1") for _ in range(3)))
        await producer.broker.close()
        return len(sent)

    assert [asyncio.run(send()) for _ in range(2)] == [3, 3]


def test_processes_that_share_an_async_broker_get_their_own_answers(broker: RunningBroker, orders: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.preloaded_async", broker.url, orders],
        env=broker.environment | {"API_KEY": API_KEY},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"sent": 240, "own": 240, "codes": [0, 0, 0]}, done.stderr
