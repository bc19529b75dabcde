"""RabbitMQ, by publisher confirms; and whatever else kombu has a transport for, by its URL."""

import threading
from contextlib import suppress

from amqp.exceptions import FrameSyntaxError, PreconditionFailed
from kombu import Connection, Producer
from kombu.exceptions import KombuError

from mqbroker_client.messages import StoredMessage
from mqbroker_client.relay.headers import CloudEvents, headers
from mqbroker_client.relay.names import Pattern
from mqbroker_client.relay.targets import TargetAway, TargetRefused

CONFIRM_SECONDS = 10.0
CONNECT_SECONDS = 5.0


class Producers:
    """A producer for each thread, on a connection of its own; `returning` ones note what the broker returns to them."""

    def __init__(self, connection: Connection, *, returning: bool = False) -> None:
        self._connection = connection
        self._returning = returning
        self.away: tuple[type[BaseException], ...] = (
            *connection.connection_errors,
            *connection.channel_errors,
            KombuError,
            OSError,
        )
        self._own = threading.local()
        self._opened: set[Connection] = set()

    def current(self) -> Producer:
        """The producer of this thread, for the next message."""
        # What an earlier message was returned for is not the next one's, also where its publish failed behind that.
        self._own.returned = None
        found: Producer | None = getattr(self._own, "producer", None)
        if found is None:
            connection = self._connection.clone()
            self._opened.add(connection)
            note = self._note if self._returning else None
            self._own.producer = found = Producer(connection, auto_declare=False, on_return=note)
        return found

    def returned(self) -> str | None:
        """Why the broker returned what this thread published last, if it did."""
        reason: str | None = getattr(self._own, "returned", None)
        self._own.returned = None
        return reason

    def _note(self, problem: Exception, *_: object) -> None:
        self._own.returned = str(problem)

    def drop(self) -> None:
        """Closes the connection of this thread, which may be broken: the next producer opens another."""
        producer, self._own.producer = getattr(self._own, "producer", None), None
        if producer is not None:
            connection = producer.__connection__
            self._opened.discard(connection)
            with suppress(*self.away):
                connection.release()

    def close(self) -> None:
        """Closes the connections of all threads."""
        for connection in self._opened:
            with suppress(*self.away):
                connection.release()


class Amqp:
    """An exchange of RabbitMQ, which exists, and its routing key, a pattern of the message's fields."""

    def __init__(
        self, url: str, routing_key: str, exchange: str = "", *, cloudevents: CloudEvents | None = None
    ) -> None:
        self._exchange = exchange
        self._routing_key = Pattern(routing_key)
        self._event = cloudevents
        options = {"confirm_publish": True}
        connection = Connection(url, transport_options=options, connect_timeout=CONNECT_SECONDS)
        # Other transports of kombu return nothing.
        self._mandatory = connection.transport.driver_type == "amqp"
        self._producers = Producers(connection, returning=self._mandatory)

    def publish(self, message: StoredMessage) -> None:
        routing_key = self._routing_key.of(message)
        try:
            self._producers.current().publish(
                message.body,
                exchange=self._exchange,
                routing_key=routing_key,
                content_type="application/octet-stream",
                content_encoding="binary",
                delivery_mode=2,
                mandatory=self._mandatory,
                message_id=str(message.message_id),
                headers=headers(message, self._event, "cloudEvents:"),
                confirm_timeout=CONFIRM_SECONDS,
            )
        except (PreconditionFailed, FrameSyntaxError) as problem:
            # It is too large, or a name of it is too long for AMQP: it would be tried for ever.
            self._producers.drop()
            raise TargetRefused(f"RabbitMQ refused it: {problem}") from problem
        except self._producers.away as problem:
            self._producers.drop()
            raise TargetAway(f"{type(problem).__name__}: {problem}") from problem
        if reason := self._producers.returned():
            raise TargetRefused(f"RabbitMQ returned it: {reason}, no queue is bound to {routing_key!r}")

    def close(self) -> None:
        self._producers.close()
