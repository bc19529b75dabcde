"""A cell is split: topics go on in a new one, which its standby has become, and nothing is lost, doubled or late."""

from mqbroker_client import Admin, Consumer, LocalTransactionState, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.running import RunningBroker
from tests.moves.ground import Ground, url_in


def test_a_split_has_a_home_go_on_in_a_new_cell_with_all_that_waits_for_it(
    ground: Ground, broker: RunningBroker, producer: Producer, consumer: Consumer
) -> None:
    shop, beside = characters.name("shop"), characters.name("beside")
    for topic in (shop, beside):
        Admin(broker.client()).create_topic(topic, queues=2)
    begun = [producer.begin(topic, b"half") for topic in (shop, beside)]
    handles = []
    for topic in (shop, beside):
        producer.send(topic, b"before")
        [delivery] = consumer.receive(topic)
        handles.append(delivery.receipt_handle)
        producer.send(topic, b"late", delay_seconds=12)
    standby = ground.standby()
    words = ("split", "c1", "--into", "c2", "--standby", url_in(standby, "mqbroker_c1"), "--home", shop)

    shown = ground.cells(*words, "--dry-run")
    said = ground.cells(*words)
    print(shown, said)

    for one in begun:
        Producer(broker.client(1), producer.group).end(one.transaction_id, LocalTransactionState.COMMIT)
    acked = broker.wire().post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": handles})
    assert [one["status"] for one in acked.document["results"]] == [200, 200]
    for topic in (shop, beside):
        producer.send(topic, b"after")
        found: list[bytes] = []
        while len(found) < 3:
            found += bodies(consumer.receive(topic, max_messages=3, wait_seconds=10))
        assert sorted(found) == [b"after", b"half", b"late"]
    assert ground.stored(shop) == {"c0": 0, "c1": 3, "c2": 4}
    assert ground.stored(beside) == {"c0": 0, "c1": 4, "c2": 3}
    assert "done" in said
