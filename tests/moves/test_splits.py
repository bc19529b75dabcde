"""A cell is split: topics go on in a new one, which its standby has become, and nothing is lost, doubled or late."""

from mqbroker_client import Admin, Consumer, LocalTransactionState, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.moves.ground import Ground
from tests.over_cells.test_metrics import series


def test_a_split_has_a_home_go_on_in_a_new_cell_with_all_that_waits_for_it(
    ground: Ground, broker: RunningBroker, producer: Producer, consumer: Consumer
) -> None:
    shop, beside = characters.name("shop"), characters.name("beside")
    for topic in (shop, beside):
        Admin(broker.client()).create_topic(topic, queues=2)
    begun = [producer.begin(topic, b"half") for topic in (shop, beside)]
    before = [ended(producer, topic) for topic in (shop, beside)]
    dead = Consumer(broker.client(), characters.name("dead"))
    Admin(broker.client()).create_consumer_group(dead.group, retry_policy={"kind": "none"})
    for topic in (shop, beside):
        dead.nack(dead.receive(topic, wait_seconds=10))
    handles = []
    for topic in (shop, beside):
        producer.send(topic, b"before")
        handles += [one.receipt_handle for one in consumer.receive(topic, max_messages=2)]
        producer.send(topic, b"late", delay_seconds=12)
    standby = ground.standby()
    words = ("split", "c1", "--into", "c2", "--standby", url_in(standby, "mqbroker_c1"), "--home", shop)

    shown = ground.cells(*words, "--dry-run")
    said = ground.cells(*words)
    print(shown, said)

    for one in begun:
        Producer(broker.client(1), producer.group).end(one.transaction_id, LocalTransactionState.COMMIT)
    acked = broker.wire().post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": handles})
    assert [one["status"] for one in acked.document["results"]] == [200] * 4
    for topic in (shop, beside):
        producer.send(topic, b"after")
        found: list[bytes] = []
        while len(found) < 3:
            found += bodies(consumer.receive(topic, max_messages=3, wait_seconds=10))
        assert sorted(found) == [b"after", b"half", b"late"]
    assert ground.stored(shop) == {"c0": 0, "c1": 4, "c2": 5}
    assert ground.stored(beside) == {"c0": 0, "c1": 5, "c2": 4}
    assert "done" in said
    for wire in (broker.wire(), broker.wire(1)):
        assert sorted(listed(wire, producer.group)) == sorted([*before, *(str(one.transaction_id) for one in begun)])
        assert sorted(topics_of_letters(wire, dead.group)) == sorted([shop, beside])
        assert counted_letters(wire, dead.group) == [1, 1]
    letters = Consumer(broker.client(), characters.name("letters"))
    found = []
    while more := letters.receive(f"%DLQ%{dead.group}"):
        found += bodies(more)
    assert found == [b"ended", b"ended"]
    redriven = broker.wire().post(f"/v1/dead-letters/{dead.group}/redrive", {"all": True}).document["results"]
    assert [one["status"] for one in redriven] == [200, 200]
    for topic in (shop, beside):
        assert bodies(dead.receive(topic, max_messages=9, wait_seconds=10)).count(b"ended") == 1


def ended(producer: Producer, topic: str) -> str:
    """The id of a transaction that is committed with a message of the topic."""
    begun = producer.begin(topic, b"ended")
    producer.end(begun.transaction_id, LocalTransactionState.COMMIT)
    return str(begun.transaction_id)


def listed(wire: Wire, group: str) -> list[str]:
    """The ids of all transactions of a producer group that are listed."""
    answer = wire.get(f"/v1/transactions?producer_group={group}")
    assert answer.document["missing"] == []
    return [one["transaction_id"] for one in answer.document["results"]]


def counted_letters(wire: Wire, group: str) -> list[float]:
    """The number of a group's dead letters in each cell that has any."""
    found = series(wire).items()
    return [count for name, count in found if name.startswith("mqbroker_dead_letters{") and group in name]


def topics_of_letters(wire: Wire, group: str) -> list[str]:
    """The topics of a group's dead letters."""
    found, cursor = [], 0
    while cursor is not None:
        page = wire.get(f"/v1/dead-letters/{group}?cursor={cursor}").document
        found += [one["message"]["topic"] for one in page["results"]]
        cursor = page["next"]
    return found
