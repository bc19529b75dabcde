"""RabbitMQ as a target, with publisher confirms; by its URL also any other broker that kombu supports."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kombu import Connection, Producer

from mqbroker_client.contrib.relay.absence import is_absence
from mqbroker_client.contrib.relay.headers import CloudEvents, headers
from mqbroker_client.contrib.relay.names import Pattern
from mqbroker_client.contrib.relay.reserved import TABLES
from mqbroker_client.contrib.relay.targets import TargetAway, TargetRefused
from mqbroker_client.core.messages import StoredMessage

CONFIRM_SECONDS = 10.0
CONNECT_SECONDS = 5.0
#: Time limits of an open connection, by kind of transport: without them a thread waits for ever for a target that is
#: silent, such as a RabbitMQ that blocks its publishers, and a stop waits for the thread.
LIMITS: Mapping[str, Mapping[str, float]] = {
    "amqp": {"read_timeout": 5.0, "write_timeout": 5.0},
    "redis": {"socket_timeout": CONFIRM_SECONDS, "socket_connect_timeout": CONNECT_SECONDS},
}
#: The maximum length of a routing key and of a header's name in AMQP.
MAX_NAME_BYTES = 255
#: Prefixes of RabbitMQ's own queues, such as queues for replies. In Redis a queue is a key beside kombu's own keys and
#: Celery's results: a message to a queue with the name of such a key would stop all consumers.
KEPT = ("amq.",)
KEPT_IN_REDIS = (*KEPT, "_kombu.", "unacked", "celery-task")


class Producers:
    """A producer for each thread, with its own connection; with `returning` they note messages that
    the broker returns.

    `by_message`: a message names its exchange itself, so an exchange that does not exist is a fault of the message.
    """

    def __init__(self, connection: Connection, *, returning: bool = False, by_message: bool = False) -> None:
        self._connection = connection
        self._returning = returning
        self._by_message = by_message
        transport = connection.transport
        limits = LIMITS.get(transport.driver_type, {})
        connection.transport_options = {**limits, **(connection.transport_options or {})}
        self._name = "RabbitMQ" if transport.driver_type == "amqp" else transport.driver_name
        self._own = threading.local()
        self._opened: set[Connection] = set()

    def publish(self, work: Callable[[Producer], object]) -> None:
        """Publishes with this thread's producer. Raises TargetAway or TargetRefused, with the target's text."""
        try:
            work(self._current())
        except Exception as problem:
            # A target that did not answer would not answer a farewell either.
            self._drop(Connection.collect if isinstance(problem, OSError) else Connection.release)
            words = f"{type(problem).__name__}: {problem}"
            if is_absence(problem, self._connection, by_message=self._by_message):
                raise TargetAway(words) from problem
            raise TargetRefused(f"{self._name} refused it: {words}") from problem

    def _current(self) -> Producer:
        """This thread's producer, prepared for the next message."""
        # Cleared, because the reason for an earlier message must not count for this message, even if its publish fails.
        self._own.returned = None
        found: Producer | None = getattr(self._own, "producer", None)
        if found is None:
            connection = self._connection.clone()
            self._opened.add(connection)
            note = self._note if self._returning else None
            self._own.producer = found = Producer(connection, auto_declare=False, on_return=note)
        return found

    def returned(self) -> str | None:
        """The reason why the broker returned this thread's last message; None if it did not."""
        reason: str | None = getattr(self._own, "returned", None)
        self._own.returned = None
        return reason

    def _note(self, problem: Exception, *_: object) -> None:
        self._own.returned = str(problem)

    def _drop(self, end: Callable[[Connection], object]) -> None:
        """Ends the connection of this thread, which may be broken: the next producer opens another."""
        producer, self._own.producer = getattr(self._own, "producer", None), None
        if producer is not None:
            connection = producer.__connection__
            self._opened.discard(connection)
            with suppress(Exception):
                end(connection)

    def close(self) -> None:
        """Closes the connections of all threads, at the same time: each may wait for a target that is silent."""
        opened = tuple(self._opened)
        with ThreadPoolExecutor(len(opened) or 1) as pool:
            for connection in opened:
                pool.submit(connection.release)


class Amqp:
    """An existing exchange of RabbitMQ as a target, and the routing key, a pattern of the message's fields."""

    def __init__(
        self, url: str, routing_key: str, exchange: str = "", *, cloudevents: CloudEvents | None = None
    ) -> None:
        self._exchange = exchange
        self._event = cloudevents
        options = {"confirm_publish": True}
        connection = Connection(url, transport_options=options, connect_timeout=CONNECT_SECONDS)
        kind = connection.transport.driver_type
        self._routing_key = Pattern(routing_key, kept=KEPT_IN_REDIS if kind == "redis" else KEPT)
        # Other transports of kombu return nothing.
        self._mandatory = kind == "amqp"
        self._producers = Producers(connection, returning=self._mandatory)

    def publish(self, message: StoredMessage) -> None:
        routing_key = _fitting("routing key", self._routing_key.of(message))
        if not (routing_key or self._exchange or self._mandatory):
            raise TargetRefused("the routing key is empty: no queue has this name")
        found = headers(message, TABLES["amqp"], self._event, "cloudEvents:")
        for name in found:
            _fitting("header", name)

        def work(producer: Producer) -> None:
            producer.publish(
                message.body,
                exchange=self._exchange,
                routing_key=routing_key,
                content_type="application/octet-stream",
                content_encoding="binary",
                delivery_mode=2,
                mandatory=self._mandatory,
                message_id=str(message.message_id),
                headers=found,
                confirm_timeout=CONFIRM_SECONDS,
            )

        self._producers.publish(work)
        if reason := self._producers.returned():
            raise TargetRefused(f"RabbitMQ returned it: {reason}, no queue is bound to {routing_key!r}")

    def close(self) -> None:
        self._producers.close()


def _fitting(what: str, name: str) -> str:
    """Raises TargetRefused for a name that is too long for AMQP."""
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        raise TargetRefused(f"AMQP refuses the {what} {name[:40]!r}… of {size} bytes, its limit is {MAX_NAME_BYTES}")
    return name
