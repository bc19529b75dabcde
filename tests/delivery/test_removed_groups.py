"""A consumer group that is deleted: the handles of its deliveries are refused."""

import json

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


def test_a_receive_that_waits_while_its_group_is_deleted_is_refused_and_makes_no_group(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    """A group that it made would begin at the earliest message, and be handed again what was acked."""
    path = f"/v1/consumer-groups/{consumer.group}"
    producer.send(orders, b"order 1")
    consumer.ack(consumer.receive(orders, wait_seconds=5))
    waiting = wire.ask("POST", f"{path}/receive", json.dumps({"topic": orders, "wait_seconds": 20}).encode())
    # Behind it in the same process, which writes a group's receives in their order.
    assert consumer.receive(orders) == []

    assert wire.call("DELETE", path).status == 204
    producer.send(orders, b"order 2")

    sentence = f"There is no consumer group {consumer.group}: PUT {path} makes it."
    assert waiting.answer().problem == problem(404, "group_not_exist", sentence)
    assert wire.get(path).status == 404
