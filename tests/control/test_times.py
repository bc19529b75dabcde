"""Every time that the API answers has microseconds, also where it is a whole second."""

import re
import uuid
from collections.abc import Iterator

from mqbroker_client import Producer

from tests.broker import characters
from tests.broker.wire import Wire
from tests.control.operators import Operator

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
BEGINS_AS_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


def texts(document: object) -> Iterator[str]:
    """The texts of a document."""
    if isinstance(document, dict):
        for value in document.values():
            yield from texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)
    elif isinstance(document, str):
        yield document


def require_microseconds(document: object, whole: str) -> None:
    """The document has this whole second, and no time without microseconds."""
    times = [text for text in texts(document) if BEGINS_AS_TIME.match(text)]
    assert f"{whole}.000000Z" in times
    assert [time for time in times if not TIME.fullmatch(time)] == []


def second_ahead(operator: Operator) -> str:
    """A whole second that a timer may wait for, without fraction and zone."""
    year, rest = operator.reads("/v1/stats")["at"][:19].split("-", 1)
    month = int(rest[:2])
    return f"{int(year) + month // 12}-{month % 12 + 1:02}-01T00:00:00"


def test_a_message_that_waits_for_a_whole_second(operator: Operator, orders: str) -> None:
    second = second_ahead(operator)
    fields = {"topic": orders, "body": "order", "message_id": str(uuid.uuid4()), "deliver_at": f"{second}Z"}

    sent = operator.make("/v1/messages", **fields).document

    require_microseconds(sent, second)
    require_microseconds(operator.make("/v1/messages", **fields).document, second)
    require_microseconds(operator.reads(f"/v1/messages/{sent['message_id']}/trace"), second)


def test_a_commit_that_delays_to_a_whole_second(operator: Operator, wire: Wire, orders: str) -> None:
    second, shop = second_ahead(operator), characters.name("shop")
    half = {"producer_group": shop, "topic": orders, "body": "order", "deliver_at": f"{second}Z"}
    begun = wire.post("/v1/transactions", half).document

    end = wire.post(f"/v1/transactions/{begun['transaction_id']}/end", {"producer_group": shop, "state": "COMMIT"})

    require_microseconds(end.document, second)


def test_a_message_that_was_born_at_a_whole_second(wire: Wire, producer: Producer, orders: str) -> None:
    born = "2024-02-29T12:00:00"
    sent = wire.post("/v1/messages", {"topic": orders, "body": "order", "born_at": f"{born}+00:00"}).document

    require_microseconds(wire.get(f"/v1/messages/{sent['message_id']}").document, born)
    require_microseconds(wire.get(f"/v1/messages?topic={orders}").document, born)
    received = wire.post(f"/v1/consumer-groups/{characters.name('group')}/receive", {"topic": orders})
    require_microseconds(received.document, born)


def test_a_key_that_expires_at_a_whole_second(operator: Operator) -> None:
    name = characters.name("holder")

    made = operator.make("/v1/api-keys", name=name, scopes=["metrics"], expires_at="2999-01-01T02:00:00+02:00")

    require_microseconds(made.document, "2999-01-01T00:00:00")
    require_microseconds(operator.reads(f"/v1/api-keys/{name}"), "2999-01-01T00:00:00")
