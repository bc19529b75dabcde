"""Push from a fair group: what it has read ahead is pushed, too."""

from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.push.operators import Operator
from tests.push.servers import pushed, texts


def test_what_a_fair_group_has_read_ahead_is_pushed(
    operator: Operator, producer: Producer, consumer: Consumer, server: ProducerEndpoint, topic: str
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{consumer.group}", fair_by="sharding_key")
    sent = [f"order {number}" for number in range(100)]
    for text in sent:
        producer.send(topic, text.encode())
    first = consumer.receive(topic, max_messages=1)
    consumer.ack(first)

    operator.subscribes(consumer.group, topic, server.url, max_batch=7)

    eventually(lambda: len(pushed(server)) == len(sent) - 1)
    assert sorted([*texts(server), *(body.decode() for body in bodies(first))]) == sorted(sent)
