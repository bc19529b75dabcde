"""Recall: a delayed message is either taken back or delivered, never both, and the answer says which."""

import asyncio
import base64
import json
import time
import uuid
from collections import Counter
from datetime import datetime

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.load import Crowd, at_once
from tests.broker.polling import STILL_SECONDS, eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire, problem

DELAYS = [{"delay_level": 1}, {"delay_seconds": 1}]


@pytest.mark.parametrize("delay", DELAYS, ids=["level", "timer"])
def test_a_recalled_message_is_never_delivered(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, delay: Document
) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "queue_id": 0, **delay}).document
    handle = {"recall_handle": sent["recall_handle"]}
    later = {"topic": orders, "body": "order 2", "queue_id": 0, **delay}

    recalled = wire.post("/v1/messages/recall", handle)
    again = wire.post("/v1/messages/recall", handle)

    wire.post("/v1/messages", later)
    page = eventually(lambda: consumer.pull(orders, 0, 0).messages)
    assert (recalled.status, recalled.document) == (200, {"message_id": sent["message_id"], "state": "RECALLED"})
    assert (again.status, again.document) == (200, recalled.document)
    assert bodies(page) == [b"order 2"]


@pytest.mark.parametrize("delay", DELAYS, ids=["level", "timer"])
def test_a_message_that_was_delivered_is_not_recalled(
    wire: Wire, consumer: Consumer, orders: str, delay: Document
) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "queue_id": 0, **delay}).document
    eventually(lambda: consumer.pull(orders, 0, 0).messages)

    answer = wire.post("/v1/messages/recall", {"recall_handle": sent["recall_handle"]})

    assert answer.problem == problem(
        409,
        "already_delivered",
        f"Message {sent['message_id']} was delivered before the recall: its consumers have it.",
    )


# Due together, late enough that the first recalls come before that on a slow machine too.
RACED_DELAYS = {"level": {"delay_level": 5}, "timer": {"delay_seconds": 3}}
RACED = 300
EARLIEST_SECONDS, LATEST_SECONDS = -0.5, 1.0


@pytest.mark.parametrize("kind", RACED_DELAYS)
async def test_of_messages_that_are_recalled_when_they_are_due_each_is_recalled_or_delivered_and_none_both(
    broker: RunningBroker, orders: str, kind: str
) -> None:
    bodies = [str(number) for number in range(RACED)]

    async def recall(numbered: tuple[int, Document]) -> tuple[str, int]:
        number, sent = numbered
        due_at = datetime.fromisoformat(sent["deliver_at"]).timestamp()
        apart = EARLIEST_SECONDS + (LATEST_SECONDS - EARLIEST_SECONDS) * number / RACED
        await asyncio.sleep(due_at + apart - time.time())
        status, _ = await crowd.post("/v1/messages/recall", {"recall_handle": sent["recall_handle"]})
        return bodies[number], status

    async with Crowd(broker.urls) as crowd:
        # The last one is due after all the others, and is not recalled.
        *sent, _ = await crowd.bulk(
            {"op": "send", "topic": orders, "body": body, "queue_id": 0, **RACED_DELAYS[kind]}
            for body in [*bodies, "the last"]
        )
        statuses = dict(await at_once(recall, enumerate(sent)))
        found = await everything_up_to(crowd, orders, "the last")

    assert set(statuses.values()) == {200, 409}
    assert Counter(found) == Counter(body for body, status in statuses.items() if status == 409)


def packed(*handle: object) -> str:
    """A handle as the broker packs one."""
    return base64.urlsafe_b64encode(json.dumps(handle).encode()).decode().rstrip("=")


SOME_ID = str(uuid.UUID(int=1))
NO_HANDLES = [
    "",
    "x",
    "W10",
    packed("x"),
    packed(SOME_ID),
    packed(SOME_ID, SOME_ID, 0, 0),
    packed(SOME_ID, None, 0),
    packed(SOME_ID, None, -1, 0),
    packed(SOME_ID, None, 0, 2**63),
]


@pytest.mark.parametrize("handle", NO_HANDLES)
def test_what_is_no_recall_handle_is_refused(wire: Wire, handle: str) -> None:
    answer = wire.post("/v1/messages/recall", {"recall_handle": handle})

    assert answer.problem == problem(
        422,
        "message_illegal",
        f"recall_handle {handle[:60]!r} is not valid: give the recall_handle that the answer to the delayed "
        "send contained.",
    )


def test_a_handle_with_the_id_of_another_message_takes_nothing_back(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "queue_id": 0, "delay_level": 1}).document
    mine = producer.send(orders, b"order 2", queue_id=1)
    padded = sent["recall_handle"] + "=" * (-len(sent["recall_handle"]) % 4)
    _, *place = json.loads(base64.urlsafe_b64decode(padded))

    answer = wire.post("/v1/messages/recall", {"recall_handle": packed(str(mine.message_id), *place)})

    assert answer.problem["code"] == "already_delivered"
    assert bodies(eventually(lambda: consumer.pull(orders, 0, 0).messages)) == [b"order 1"]


async def everything_up_to(crowd: Crowd, topic: str, last: str) -> list[str]:
    """The other bodies of queue 0, once it has the last one."""
    async with asyncio.timeout(STILL_SECONDS):
        while True:
            _, page = await crowd.get(f"/v1/topics/{topic}/queues/0/messages?offset=0&max=1000")
            found = [entry["message"]["body"] for entry in page["messages"]]
            if last in found:
                found.remove(last)
                return found
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("delay", [{"delay_level": 5}, {"delay_seconds": 30}], ids=["level", "timer"])
def test_a_delayed_message_sent_again_is_answered_as_the_first_time_and_can_be_recalled_by_that(
    wire: Wire, orders: str, delay: dict[str, int]
) -> None:
    message = {"topic": orders, "body": "order 1", "message_id": str(uuid.uuid4()), **delay}
    first = wire.post("/v1/messages", message).document

    again = wire.post("/v1/messages", message).document

    assert again == {**first, "duplicate": True}
    assert wire.post("/v1/messages/recall", {"recall_handle": again["recall_handle"]}).status == 200


@pytest.mark.parametrize("delay", [{"delay_level": 5}, {"delay_seconds": 30}], ids=["level", "timer"])
def test_a_recalled_message_sent_again_is_said_to_be_recalled(wire: Wire, orders: str, delay: dict[str, int]) -> None:
    message = {"topic": orders, "body": "order 1", "message_id": str(uuid.uuid4()), **delay}
    first = wire.post("/v1/messages", message).document
    wire.post("/v1/messages/recall", {"recall_handle": first["recall_handle"]})

    again = wire.post("/v1/messages", message).document

    del first["deliver_at"], first["recall_handle"]
    assert again == {**first, "duplicate": True, "recalled": True}


def test_a_recalled_message_of_a_level_is_said_to_be_recalled_also_when_its_time_is_over(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    message = {"topic": orders, "body": "order 1", "queue_id": 0, "message_id": str(uuid.uuid4()), "delay_level": 1}
    first = wire.post("/v1/messages", message).document
    wire.post("/v1/messages/recall", {"recall_handle": first["recall_handle"]})
    wire.post("/v1/messages", {"topic": orders, "body": "order 2", "queue_id": 0, "delay_level": 1})
    eventually(lambda: consumer.pull(orders, 0, 0).messages)

    again = wire.post("/v1/messages", message).document

    assert (again["recalled"], again["queue_offset"], "deliver_at" in again) == (True, None, False)


@pytest.mark.parametrize("delay", DELAYS, ids=["level", "timer"])
def test_a_delayed_message_sent_again_after_its_time_is_answered_with_its_offset(
    wire: Wire, consumer: Consumer, orders: str, delay: Document
) -> None:
    message = {"topic": orders, "body": "order 1", "queue_id": 0, "message_id": str(uuid.uuid4()), **delay}
    wire.post("/v1/messages", message)
    eventually(lambda: consumer.pull(orders, 0, 0).messages)

    again = wire.post("/v1/messages", message).document

    assert (again["queue_offset"], "deliver_at" in again, "recalled" in again) == (0, False, False)
