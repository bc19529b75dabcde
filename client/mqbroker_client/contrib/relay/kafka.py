"""Kafka as a target, with librdkafka's idempotent producer: all in-sync replicas confirm a message."""

import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mqbroker_client.contrib.relay.headers import CloudEvents, headers
from mqbroker_client.contrib.relay.names import Pattern
from mqbroker_client.contrib.relay.reserved import TABLES
from mqbroker_client.contrib.relay.targets import TargetAway, TargetRefused
from mqbroker_client.core.messages import StoredMessage

TIMEOUT_MS = 30_000
POLL_SECONDS = 0.1
#: Seconds for closing a broken producer and discarding its queued messages.
PURGE_SECONDS = 10.0
#: Kafka's rule for names of topics. KEPT is the prefix of Kafka's own topics: two underscores.
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
KEPT = ("__",)
#: Errors that mean that the target is away. Errors of the message, or of the topic that it names, are not listed.
AWAY = frozenset(
    (
        # librdkafka's own
        *(KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._SSL),
        *(KafkaError._AUTHENTICATION, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE),
        *(KafkaError._QUEUE_FULL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._RETRY),
        *(KafkaError._WAIT_COORD, KafkaError._WAIT_CACHE, KafkaError._NODE_UPDATE, KafkaError._UNKNOWN_BROKER),
        *(KafkaError._CRIT_SYS_RESOURCE, KafkaError._DESTROY, KafkaError._OUTDATED, KafkaError._ISR_INSUFF),
        # the cluster's
        *(KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT),
        *(KafkaError.BROKER_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION),
        *(KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.NOT_CONTROLLER),
        *(KafkaError.KAFKA_STORAGE_ERROR, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH),
        *(KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR),
        *(KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.STALE_BROKER_EPOCH),
        *(KafkaError.UNKNOWN_PRODUCER_ID, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_PRODUCER_ID_MAPPING),
        # problems of the whole relay
        *(KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED),
    )
)


class Kafka:
    """A topic of Kafka as a target; its name is a pattern of the message's fields.

    The sharding key becomes Kafka's key, which keeps the order.

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
        self._topic = Pattern(topic, kept=KEPT)
        self._event = cloudevents
        self._settings = {"message.timeout.ms": TIMEOUT_MS, **(options or {}), **own}
        self._producer = self._made()
        self._replacing = threading.Lock()
        self._closing = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="confirmations of Kafka", daemon=True)
        self._poller.start()

    def publish(self, message: StoredMessage) -> None:
        topic = self._topic.of(message)
        if not TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise TargetRefused(
                f"Kafka refuses the topic {topic[:80]!r}: it has 1 to 249 letters, digits, dots, _ and -"
            )
        confirmed: Future[KafkaError | None] = Future()
        producer = self._producer
        try:
            producer.produce(
                topic,
                message.body,
                message.sharding_key,
                headers=[*headers(message, TABLES["kafka"], self._event, "ce_").items()],
                on_delivery=lambda error, _: confirmed.set_result(error),
            )
        except BufferError as problem:
            raise TargetAway(str(problem)) from problem
        except KafkaException as problem:
            raise self._raised(problem.args[0], producer) from problem
        if (error := confirmed.result()) is not None:
            raise self._raised(error, producer)

    def close(self) -> None:
        self._closing.set()
        self._poller.join()

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)

    def _made(self) -> Producer:
        try:
            return Producer(self._settings)
        except KafkaException as problem:
            raise ValueError(f"target.options: {problem.args[0].str()}") from problem

    def _raised(self, error: KafkaError, producer: Producer) -> Exception:
        words = f"{error.name()}: {error.str()}"
        if error.code() == KafkaError._FATAL or error.fatal():
            self._replace(producer)
            return TargetAway(words)
        return (TargetAway if error.code() in AWAY else TargetRefused)(words)

    def _replace(self, broken: Producer) -> None:
        """Replaces a producer that can no longer publish, because it has lost its sequence."""
        with self._replacing:
            if self._producer is broken:
                self._producer = self._made()
        # Each thread that waits for the broken producer gets the error at once.
        broken.purge()
        broken.flush(PURGE_SECONDS)
