"""The entries of a topic are listed by the time they became visible, the newest first, each once."""

import pytest
from mqbroker_client import Producer

from tests.broker.polling import eventually
from tests.broker.wire import Document, Wire
from tests.lookup.looking import at, bodies, listed, send, traced


@pytest.fixture
def sent(wire: Wire, orders: str) -> list[Document]:
    """Thirty messages in four queues, some of them in one write."""
    singles = [send(wire, orders, str(number)) for number in range(10)]
    batch = {"topic": orders, "messages": [{"body": str(number)} for number in range(10, 20)]}
    batched = wire.post("/v1/messages/batch", batch).document["results"]
    bulk = wire.bulk(*({"op": "send", "topic": orders, "body": str(number)} for number in range(20, 30)))
    return [*singles, *batched, *bulk]


@pytest.mark.parametrize("limit", [1, 7, 29, 30, 31, 500])
def test_pages_hold_each_entry_once_the_newest_first(wire: Wire, orders: str, sent: list[Document], limit: int) -> None:
    found = listed(wire, limit, topic=orders)

    places = {(entry["queue_id"], entry["queue_offset"]) for entry in found}
    assert len(found) == len(places) == len(sent)
    assert places == {(one["queue_id"], one["queue_offset"]) for one in sent}
    visible = [at(traced(wire, entry["message"]["message_id"]), "visible") for entry in found]
    assert visible == sorted(visible, reverse=True)


def test_a_list_begins_at_its_time_and_ends_before_the_other(wire: Wire, orders: str, sent: list[Document]) -> None:
    times = [at(traced(wire, one["message_id"]), "visible") for one in sent[:10]]

    assert bodies(listed(wire, topic=orders, from_=times[3], to=times[6])) == ["5", "4", "3"]
    assert bodies(listed(wire, 2, topic=orders, to=times[6])) == ["5", "4", "3", "2", "1", "0"]
    assert len(listed(wire, 2, topic=orders, from_=times[6])) == 24
    assert listed(wire, topic=orders, from_="2200-01-01T00:00:00Z") == []
    assert listed(wire, topic=orders, to="1970-01-01T00:00:00Z") == []


def test_a_message_is_listed_once_it_is_visible_under_that_time(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"half")
    delayed = send(wire, orders, "later", delay_level=1)
    send(wire, orders, "now")
    assert bodies(listed(wire, topic=orders))[-1] == "now"

    eventually(lambda: len(listed(wire, topic=orders)) == 2)
    transaction.commit()

    half, *earlier = listed(wire, topic=orders)
    assert half["message"]["message_id"] == str(transaction.message_id)
    assert bodies(earlier) == ["later", "now"]
    visible_at = at(traced(wire, delayed["message_id"]), "visible")
    assert bodies(listed(wire, topic=orders, to=visible_at)) == ["now"]


def test_an_empty_topic_lists_nothing(wire: Wire, orders: str) -> None:
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")

    assert listed(wire, topic=orders) == []


def test_a_time_may_have_an_offset_that_was_not_escaped(wire: Wire, orders: str) -> None:
    send(wire, orders, "order")

    answer = wire.get(f"/v1/messages?topic={orders}&from=2024-01-01T00:00:00+01:00")

    assert bodies(answer.document["results"]) == ["order"]
