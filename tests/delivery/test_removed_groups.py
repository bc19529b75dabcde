"""A consumer group that is deleted: the handles of its deliveries are refused."""

from mqbroker_client import Consumer, Producer

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire, problem


def test_an_ack_for_a_group_that_is_gone_says_that_it_is_gone(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders, wait_seconds=5)

    assert broker.wire(web=1).call("DELETE", f"/v1/consumer-groups/{consumer.group}").status == 204

    def ack() -> object:
        path = f"/v1/consumer-groups/{consumer.group}/ack"
        answer = wire.post(path, {"receipt_handles": [delivery.receipt_handle]})
        if answer.status == 200:  # A process may not know for two seconds, but the delivery is gone.
            assert answer.document["results"][0]["code"] == "receipt_expired"
            return None
        return answer.problem

    assert eventually(ack) == problem(
        404,
        "group_not_exist",
        f"There is no consumer group {consumer.group}: PUT /v1/consumer-groups/{consumer.group} makes it.",
    )
