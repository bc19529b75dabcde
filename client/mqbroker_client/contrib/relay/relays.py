"""The relay: receives messages, publishes each until the target has confirmed it, then acks it."""

import logging
import threading
from collections.abc import Mapping

from mqbroker_client.contrib.relay.targets import Target, TargetAway
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.handlers import Redeliver
from mqbroker_client.core.messages import Delivery
from mqbroker_client.core.retries import round_pause_seconds
from mqbroker_client.core.running import stopped_by_signals

log = logging.getLogger(__name__)

CONCURRENCY = 8
#: Seconds for which a stop waits for messages that are being published.
STOP_SECONDS = 30.0


class Relay:
    """A consumer that publishes each message of a topic to a target, and acks it when the target has confirmed it.

    So each message is published at least once: after a crash before the ack the message is published again, with the
    same id. While the target is away, messages are held and extended, and no retry is counted.
    """

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        target: Target,
        *,
        filter: str | Mapping[str, str] | None = None,
        ordered: bool | None = False,
    ) -> None:
        self.consumer = consumer
        self.topic = topic
        self.target = target
        self._filter = filter
        self._ordered = ordered
        self._stop = threading.Event()

    def run(self, *, concurrency: int = CONCURRENCY, stop: threading.Event | None = None) -> None:
        """Relays in `concurrency` threads until SIGTERM, SIGINT or `stop`.

        Raises the broker's refusal that ended the run.
        """
        self._stop = stop or threading.Event()
        try:
            with stopped_by_signals(self._stop):
                self.consumer.run(
                    self.topic,
                    self._publish,
                    concurrency=concurrency,
                    ordered=self._ordered,
                    filter=self._filter,
                    stop_seconds=STOP_SECONDS,
                    stop=self._stop,
                )
        finally:
            self.target.close()

    def _publish(self, delivery: Delivery) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                self.target.publish(delivery.message)
                return
            except TargetAway as problem:
                failures += 1
                if failures == 1:
                    log.warning("the target takes no message of %s, which is tried again: %s", self.topic, problem)
                self._stop.wait(round_pause_seconds(failures))
        raise Redeliver(0, "the relay was stopped before the target had taken the message")
