"""A call of a task belongs to its transaction, and is published as Celery itself would publish it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import chain
from mqbroker_client import Consumer, Message
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.celery import TransactionalTask
from mqbroker_client.contrib.relay import relays

from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document
from tests.relay import rabbit
from tests.tasks.conftest import Shop, comparable, nothing

LATER = datetime(2037, 1, 31, 12, tzinfo=UTC)
OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "countdown": {"eta": LATER, "expires": LATER + timedelta(days=1)},
    "priority": {"priority": 7},
    "headers": {"headers": {"tenant": "seven", "number": 7}},
    "pickle": {"serializer": "pickle"},
    "yaml": {"serializer": "yaml"},
    "compressed": {"compression": "gzip"},
    "limits": {"time_limit": 30, "soft_time_limit": 20, "ignore_result": True},
    "shadow": {"shadow": "another name"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_relayed_call_is_the_message_that_celery_publishes_itself(shop: Shop, options: dict[str, Any]) -> None:
    args, kwargs = (7, "fäx", None), {"when": "now", "list": [1, {"a": 2.5}]}
    shop.plain.apply_async(args, kwargs, queue=f"{shop.queue}-plain", **options)

    with shop.relaying():
        shop.calls(lambda: shop.task.apply_async(args, kwargs, queue=f"{shop.queue}-plain", **options))
        plain, relayed = shop.published(2, f"{shop.queue}-plain")

    assert comparable(relayed) == comparable(plain)
    assert relayed["headers"]["task"] == "shop.mail"


def test_a_call_is_published_when_its_transaction_commits_and_not_when_it_rolls_back(shop: Shop) -> None:
    ids: list[str] = []
    with shop.relaying():
        shop.calls(lambda: ids.append(shop.task.delay("back").id), commit=False)
        shop.calls(lambda: ids.append(shop.task.delay("kept").id))
        [message] = shop.published(1)

    assert message["headers"]["id"] == message["properties"]["correlation_id"] == ids[1]
    assert received_until_empty(Consumer(shop.broker.client(), "another"), shop.topic)[0].message.message_id.hex == (
        ids[1].replace("-", "")
    )


def test_a_task_keeps_an_id_that_is_no_uuid(shop: Shop) -> None:
    with shop.relaying():
        shop.calls(lambda: shop.task.apply_async(task_id="order 7"))
        [message] = shop.published(1)

    assert message["headers"]["id"] == "order 7"


def test_outside_of_a_transaction_a_call_is_refused_with_the_way_out(shop: Shop) -> None:
    with pytest.raises(OutsideTransaction, match=r"shop\.mail is called in no transaction.*in_session.*atomic\(\)"):
        shop.task.delay()


def test_the_tasks_of_an_app_have_calls_of_both_kinds_beside_each_other(shop: Shop) -> None:
    task = shop.app_at(shop.celery_url, task_cls=TransactionalTask).task(name="shop.both")(nothing)
    task.topic = shop.topic

    with shop.relaying():
        shop.calls(task.delay_in_transaction, commit=False)
        task.delay()
        shop.calls(task.delay_in_transaction)
        found = shop.published(2)

    assert [message["headers"]["task"] for message in found] == ["shop.both", "shop.both"]


def test_what_a_worker_calls_by_itself_needs_no_transaction(shop: Shop) -> None:
    retried = shop.task.signature(("again",), task_id="one", root_id="one", parent_id=None)
    retried.apply_async()
    [message] = shop.published(1)
    assert message["headers"]["id"] == "one"

    # The second of a chain is in the message of the first.
    with shop.relaying():
        shop.calls(lambda: chain(shop.task.si("first"), shop.task.si("second")).apply_async())
        found = shop.published(2)
    assert len(found) == 2


def test_while_celerys_broker_is_away_calls_wait_and_nothing_is_a_retry(shop: Shop) -> None:
    ids: list[str] = []
    with shop.relaying(shop.app_at(f"redis://127.0.0.1:{free_port()}/0")):
        shop.calls(lambda: ids.append(shop.task.delay().id))
        consumer = Consumer(shop.broker.client(), shop.group)
        # It is in the relay's hands.
        eventually(lambda: consumer.receive(shop.topic, wait_seconds=1) == [])
    with shop.relaying():
        [message] = shop.published(1)

    assert message["headers"]["id"] == ids[0]


def test_what_is_no_call_becomes_a_dead_letter_with_the_reason_and_holds_nothing_up(shop: Shop) -> None:
    wire = shop.broker.wire()
    shop.outbox.producer.send_message(Message(shop.topic, b"no call", max_reconsume_times=0))
    with shop.relaying():
        shop.calls(lambda: shop.task.delay())
        assert len(shop.published(1)) == 1
        found = eventually(lambda: wire.get(f"/v1/dead-letters/{shop.group}").document.get("results"))

    assert "the message is no call of a task" in found[0]["reason"]


@pytest.mark.heavy
def test_calls_that_name_an_exchange_that_does_not_exist_are_dead_letters_and_hold_nothing_up(
    shop: Shop, tmp_path: Path
) -> None:
    wire = shop.broker.wire()
    put = wire.call("PUT", f"/v1/consumer-groups/{shop.group}", b'{"max_reconsume_times": 0, "start_at": "earliest"}')
    assert put.status == 201
    with rabbit.running(tmp_path / "rabbitmq") as server:
        # As many as there are threads would stop the relay for ever.
        for _ in range(relays.CONCURRENCY):
            shop.calls(lambda: shop.task.apply_async(exchange="nowhere", routing_key="mail"))
        with shop.relaying(shop.app_at(server.url)):
            shop.calls(lambda: shop.task.delay())
            path = f"/v1/dead-letters/{shop.group}"
            found = eventually(lambda: all_of(wire.get(path).document, relays.CONCURRENCY))
            eventually(lambda: server.has(shop.queue, 1))

    assert all("no exchange 'nowhere'" in letter["reason"] for letter in found)


def all_of(document: Document, count: int) -> list[Document] | None:
    """The results, once there are so many."""
    found: list[Document] = document.get("results") or []
    return found if len(found) >= count else None
