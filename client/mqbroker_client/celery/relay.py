"""The relay: publishes calls of tasks to Celery's own broker, and acks those that it has confirmed."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from celery import Celery
from kombu import Connection, Producer
from kombu.exceptions import KombuError

from mqbroker_client.celery.calls import Call
from mqbroker_client.celery.tasks import TOPIC
from mqbroker_client.consumers import Consumer
from mqbroker_client.handlers import Redeliver
from mqbroker_client.messages import Delivery
from mqbroker_client.retries import round_pause_seconds
from mqbroker_client.running import stopped_by_signals

log = logging.getLogger(__name__)

GROUP = "celery-relay"
CONCURRENCY = 8
CONFIRM_SECONDS = 10.0
#: A stop waits so long for what is being published.
STOP_SECONDS = 30.0


class Relay:
    """A consumer that publishes each call to the broker of a Celery app, in its queue and under its task id.

    A call is acked once that broker has confirmed it, so it is published at least once: a relay that dies in between
    publishes it again, as the same task. While the broker is away calls wait, and nothing is counted as a retry.
    """

    def __init__(self, app: Celery, consumer: Consumer, topic: str = TOPIC) -> None:
        self.app = app
        self.consumer = consumer
        self.topic = topic
        self._stop = threading.Event()

    def run(self, *, concurrency: int = CONCURRENCY, stop: threading.Event | None = None) -> None:
        """Relays in `concurrency` threads until SIGTERM, SIGINT or `stop`. Raises the refusal that ended it."""
        self._stop = stop or threading.Event()
        with self._publisher() as publisher, stopped_by_signals(self._stop):
            self.consumer.run(
                self.topic,
                publisher.publish,
                concurrency=concurrency,
                stop_seconds=STOP_SECONDS,
                stop=self._stop,
            )

    @contextmanager
    def _publisher(self) -> Iterator["Publisher"]:
        options = {**self.app.conf.broker_transport_options, "confirm_publish": True}
        with self.app.connection_for_write(transport_options=options) as connection:
            publisher = Publisher(self.app, connection, self._stop)
            try:
                yield publisher
            finally:
                publisher.close()


class Publisher:
    """Publishes deliveries, each until it is confirmed; each thread has a connection of its own."""

    def __init__(self, app: Celery, connection: Connection, stop: threading.Event) -> None:
        self._app = app
        self._connection = connection
        self._away: tuple[type[BaseException], ...] = (
            *connection.connection_errors,
            *connection.channel_errors,
            KombuError,
            OSError,
        )
        self._stop = stop
        self._own = threading.local()
        self._opened: set[Connection] = set()

    def publish(self, delivery: Delivery) -> None:
        """Returns once the call is confirmed. Raises ValueError for what is no call, Redeliver at a stop."""
        call = Call.of(delivery.message.body)
        failures = 0
        while not self._stop.is_set():
            try:
                call.publish(self._app, self._producer(), confirm_timeout=CONFIRM_SECONDS)
                return
            except self._away as problem:
                self._drop()
                failures += 1
                if failures == 1:
                    log.warning("Celery's broker takes no task, which is tried again: %s", problem)
                self._stop.wait(round_pause_seconds(failures))
        raise Redeliver(0, "the relay was stopped before Celery's broker had taken the task")

    def close(self) -> None:
        """Closes the connections of all threads."""
        for connection in self._opened:
            connection.release()

    def _producer(self) -> Producer:
        found: Producer | None = getattr(self._own, "producer", None)
        if found is None:
            connection = self._connection.clone()
            self._opened.add(connection)
            self._own.producer = found = self._app.amqp.Producer(connection, auto_declare=False)
        return found

    def _drop(self) -> None:
        """What failed may be broken: the next try opens another connection."""
        producer, self._own.producer = self._own.producer, None
        self._opened.discard(producer.connection)
        with suppress(*self._away):
            producer.connection.release()
