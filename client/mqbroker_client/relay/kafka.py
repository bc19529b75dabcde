"""Kafka, by the idempotent producer of librdkafka: a message is confirmed by all replicas that are in sync."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mqbroker_client.messages import StoredMessage
from mqbroker_client.relay.headers import CloudEvents, headers
from mqbroker_client.relay.names import Pattern
from mqbroker_client.relay.targets import TargetAway, TargetRefused

TIMEOUT_MS = 30_000
POLL_SECONDS = 0.1
#: What is wrong with the message itself.
REFUSALS = (
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._INVALID_ARG,
)


class Kafka:
    """A topic of Kafka, a pattern of the message's fields. The sharding key is the key, so that its order is kept.

    `options` are settings of librdkafka, such as `security.protocol`.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        options: Mapping[str, Any] | None = None,
        cloudevents: CloudEvents | None = None,
    ) -> None:
        own = {"bootstrap.servers": servers, "enable.idempotence": True, "acks": "all", "linger.ms": 1}
        self._topic = Pattern(topic)
        self._event = cloudevents
        self._producer = Producer({"message.timeout.ms": TIMEOUT_MS, **(options or {}), **own})
        self._closing = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="confirmations of Kafka", daemon=True)
        self._poller.start()

    def publish(self, message: StoredMessage) -> None:
        confirmed: Future[KafkaError | None] = Future()
        try:
            self._producer.produce(
                self._topic.of(message),
                message.body,
                message.sharding_key,
                headers=[*headers(message, self._event, "ce_").items()],
                on_delivery=lambda error, _: confirmed.set_result(error),
            )
        except BufferError as problem:
            raise TargetAway(str(problem)) from problem
        except KafkaException as problem:
            raise _raised(problem.args[0]) from problem
        if (error := confirmed.result()) is not None:
            raise _raised(error)

    def close(self) -> None:
        self._closing.set()
        self._poller.join()

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)


def _raised(error: KafkaError) -> Exception:
    return (TargetRefused if error.code() in REFUSALS else TargetAway)(f"{error.name()}: {error.str()}")
