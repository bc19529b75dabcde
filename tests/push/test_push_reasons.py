"""Promises of what a push keeps of a server's answers: the reason of each nack."""

from mqbroker_client import Producer

from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.wire import Document
from tests.push.operators import Operator
from tests.push.servers import pushed, settles
from tests.push.test_push import done


def test_a_dead_letter_keeps_what_the_server_said_of_it_last(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    said: dict[str, Document | None] = {
        "why": {"status": "nack", "reason": "sold out"},
        "no reason": {"status": "nack"},
        "no text": {"status": "nack", "reason": 7},
        "done": {"status": "ack", "reason": {"any": "thing"}},
        "left out": None,
        "a word of its own": {"status": "ACK"},
        "a time before": {"status": "nack", "delay_seconds": -1},
    }
    operator.does("PUT", f"/v1/consumer-groups/{name}", retry_policy={"kind": "none"})
    server.replies(settles(lambda entry: said[entry["message"]["body"]]))
    operator.subscribes(name, topic, server.url, max_batch=10)
    for text in said:
        producer.send(topic, text.encode())

    eventually(lambda: len(pushed(server)) == 7 and done(operator, name))

    letters = operator.does("GET", f"/v1/dead-letters/{name}")["results"]
    assert {letter["message"]["body"]: letter["reason"] for letter in letters} == {
        "why": "sold out",
        "no reason": "The server answered nack, without a reason.",
        "no text": "The server answered nack, without a reason.",
        **dict.fromkeys(
            ("left out", "a word of its own", "a time before"),
            'The answer has no valid result for this message: "status" is "ack" or "nack", "delay_seconds" 0 or more.',
        ),
    }
