"""Stories of a Django project on one of the places: `python -m tests.barrier.django_story PLACE BROKER STORY`.

Each story is a function; what it returns is printed as JSON.
"""

import json
import sys
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import Client, TestCase
from mqbroker_client import BrokerError, Delivery, HalfMessage
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.django import answer_checks, exactly_once, send
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.outbox import Staged
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.messages import StoredMessage

from tests.barrier import site
from tests.barrier.never_taken import NEVER_TAKEN

PLACE = json.loads(sys.argv[1])
TOPIC = PLACE["topic"]


class Declined(Exception):
    """Rolls back."""


def insert(order_id: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (%s, NULL)", [order_id])


def orders() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT order_id FROM orders ORDER BY order_id")
        return [order_id for (order_id,) in cursor.fetchall()]


@contextmanager
def declined() -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
            raise Declined
    except Declined:
        pass


def savepoints() -> Any:
    with transaction.atomic():
        insert("outer")
        send(TOPIC, "outer")
        with declined():
            send(TOPIC, "rolled back")
            with transaction.atomic():
                send(TOPIC, "released in a savepoint that is rolled back")
        with transaction.atomic():
            send(TOPIC, {"order": 1})
    with declined():
        insert("declined")
        send(TOPIC, "declined")
    with transaction.atomic():
        send(TOPIC, "after a rollback")
    return orders()


def outside() -> Any:
    try:
        send(TOPIC, "outside")
    except OutsideTransaction as error:
        return str(error)


def broker_errors() -> Any:
    """The topic is illegal, or the broker is away: the transaction fails, the next one does not."""
    raised = []
    try:
        with transaction.atomic():
            insert("refused")
            send("no topic", "refused")
    except BrokerError as error:
        raised.append(type(error).__name__)
    with transaction.atomic():
        insert("next")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM mqbroker_barrier")
            rows = cursor.fetchone()
    insert("by itself")
    return raised, rows, orders()


def a_request() -> Any:
    client = Client(raise_request_exception=False)
    paid = client.post(f"/orders/{TOPIC}/paid")
    declined = client.post(f"/orders/{TOPIC}/declined?declined")
    refused = client.post("/orders/no topic/refused")
    return [paid.status_code, declined.status_code, refused.status_code], orders()


def a_constraint() -> Any:
    try:
        with transaction.atomic():
            insert("twice")
            send(TOPIC, "twice")
            insert("twice")
    except IntegrityError:
        return orders()


class Capturing(TestCase):
    said: Any = None

    def test_a_message_is_a_function_of_the_commit(self) -> None:
        with self.captureOnCommitCallbacks() as captured, transaction.atomic():
            send(TOPIC, "captured, not sent")
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            insert("in a test")
            send(TOPIC, "captured and sent")
        type(self).said = [one.message.body.decode() for one in captured if isinstance(one, Staged)]


def captured() -> Any:
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Capturing)
    assert unittest.TextTestRunner(stream=sys.stderr).run(suite).wasSuccessful()
    return Capturing.said, orders()


def without_autocommit() -> Any:
    """Transactions that the program itself begins and commits, with blocks of `atomic` within them."""
    transaction.set_autocommit(False)
    for order_id in ("first", "second"):
        with transaction.atomic():
            insert(order_id)
            send(TOPIC, order_id)
        transaction.commit()
    with transaction.atomic():
        insert("rolled back")
        send(TOPIC, "rolled back")
    transaction.rollback()
    transaction.set_autocommit(True)
    return orders()


def never_taken() -> Any:
    """While the broker is away: what it would never take, and what only it can refuse."""
    raised = {}
    for case, (_, sendings) in NEVER_TAKEN.items():
        try:
            with transaction.atomic():
                insert(case)
                for topic, body, fields in sendings:
                    send(topic, body, **fields)
        except BrokerError as error:
            raised[case] = type(error).__name__
    for order_id in ("dropped", "sent"):
        with transaction.atomic():
            insert(order_id)
            send(TOPIC, order_id, queue_id=9)
    return raised, orders()


def a_row_by_itself() -> Any:
    """Outside of a transaction it is refused, within one it is written."""
    with transaction.atomic():
        config().barrier.insert_commit(connection, uuid7())
    try:
        config().barrier.insert_commit(connection, uuid7())
    except OutsideTransaction as error:
        return str(error)


def a_handler_without_a_commit() -> Any:
    """With AUTOCOMMIT off nothing would commit what the handler has done; how often it has run."""
    runs = []

    @exactly_once("payments")
    def pay(delivery: Delivery) -> None:
        runs.append(delivery)

    try:
        pay(received())
    except OutsideTransaction as error:
        return str(error), len(runs)


def received() -> Delivery:
    message = StoredMessage(topic=TOPIC, body=b"1", stored_at=datetime.now(UTC), commit_log_offset=0)
    return Delivery(message, 0, 0, "receipt", 1)


def lost_reply() -> Any:
    """The COMMIT succeeds, and its reply is lost."""
    try:
        with transaction.atomic():
            insert("tea")
            send(TOPIC, "tea")
    except OperationalError as error:
        return type(error).__name__


def checked_within_a_request() -> Any:
    """A request holds the only connection of the pool while a check is answered."""
    with transaction.atomic():
        orders()
        half = HalfMessage(TOPIC, b"tea", transaction_id=uuid7(), producer_group=PLACE["group"])
        began = time.monotonic()
        [outcome] = config().barrier.answer([half])
        return outcome.state, outcome.remark, time.monotonic() - began


def checks() -> Any:
    return answer_checks(seconds=5)


if __name__ == "__main__":
    story = sys.argv[3]
    site.set_up(
        sys.argv[1], sys.argv[2], ATOMIC_REQUESTS=story == "a_request", **json.loads(" ".join(sys.argv[4:]) or "{}")
    )
    print(json.dumps(globals()[story]()))
