"""The relay of tasks: publishes their calls to Celery's own broker."""

from celery import Celery
from kombu import Producer

from mqbroker_client.contrib.celery.calls import Call
from mqbroker_client.contrib.celery.tasks import TOPIC
from mqbroker_client.contrib.relay import relays
from mqbroker_client.contrib.relay.amqp import CONFIRM_SECONDS, Producers
from mqbroker_client.contrib.relay.targets import TargetRefused
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.messages import StoredMessage

GROUP = "celery-relay"


class CeleryBroker:
    """The broker of a Celery app as a target of a relay: each call goes to its queue, with the id of its task."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        options = {**app.conf.broker_transport_options, "confirm_publish": True}
        self._producers = Producers(app.connection_for_write(transport_options=options), by_message=True)

    def publish(self, message: StoredMessage) -> None:
        try:
            call = Call.of(message.body)
        except ValueError as problem:
            raise TargetRefused(str(problem)) from problem

        def work(producer: Producer) -> None:
            call.publish(self._app, producer, confirm_timeout=CONFIRM_SECONDS)

        self._producers.publish(work)

    def close(self) -> None:
        self._producers.close()


class Relay(relays.Relay):
    """A relay of calls of tasks. A task that is published again has the same id, so it is the same task."""

    def __init__(self, app: Celery, consumer: Consumer, topic: str = TOPIC) -> None:
        super().__init__(consumer, topic, CeleryBroker(app))
