"""Dead letters over cells: each is sent again within its cell, and what cannot be is told."""

from collections.abc import Sequence

from mqbroker_client import Admin, Consumer, Producer

from tests.broker import characters
from tests.broker.cells import Cells
from tests.broker.characters import bodies
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire


def died(broker: RunningBroker, consumer: Consumer, topics: Sequence[str]) -> list[str]:
    """A dead letter of the group in each topic."""
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    sent = [Producer(broker.client(), "any").send(topic, topic.encode()) for topic in topics]
    for topic in topics:
        consumer.nack(consumer.receive(topic))
    return [str(one.message_id) for one in sent]


def redriven(wire: Wire, consumer: Consumer, **asked: object) -> list[Document]:
    """What a redrive answers of each letter."""
    answer = wire.post(f"/v1/dead-letters/{consumer.group}/redrive", asked)
    assert answer.status == 200, answer
    return list(answer.document["results"])


def test_a_redrive_tells_which_letters_cannot_go_to_a_topic_of_another_cell(
    broker: RunningBroker, wire: Wire, consumer: Consumer, spread: Sequence[str]
) -> None:
    ids = died(broker, consumer, spread)
    other = Consumer(broker.client(), characters.name("others"))
    other.ack(other.receive(spread[1]))

    all_of_them = redriven(wire, consumer, all=True, to_topic=spread[1])
    again = redriven(wire, consumer, message_ids=ids, to_topic=spread[1])

    assert [(one["message_id"], one["status"]) for one in all_of_them] == list(zip(ids, (422, 200, 422), strict=True))
    assert [(one["message_id"], one["status"]) for one in again] == list(zip(ids, (422, 404, 422), strict=True))
    assert f"Message {ids[2]} lies in the cell c2, and the topic {spread[1]} in the cell c1" in again[2]["detail"]
    assert bodies(other.receive(spread[1])) == [spread[1].encode()]
    assert [one["status"] for one in redriven(wire, consumer, all=True)] == [200, 200]


def test_a_topic_that_a_redrive_makes_lies_beside_the_letters(
    broker: RunningBroker, wire: Wire, cells: Cells, consumer: Consumer, spread: Sequence[str]
) -> None:
    ids = died(broker, consumer, spread[2:])
    cells.open(0)
    new = characters.name("again")

    assert redriven(wire, consumer, all=True, to_topic=new) == [{"message_id": ids[0], "status": 200, "topic": new}]

    assert bodies(Consumer(broker.client(), characters.name("others")).receive(new)) == [spread[2].encode()]
