"""Running consumers: receive messages, pass each to a function, extend it meanwhile, and ack or nack it at the end."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from mqbroker_client.core import errors, signals
from mqbroker_client.core.handlers import Handler, messages_of, require_run
from mqbroker_client.core.hooks import entered, handled
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.receipts import Receipts, give_back, keep, settle
from mqbroker_client.core.retries import Retry, round_pause_seconds
from mqbroker_client.core.runs import Limits, is_final

log = logging.getLogger(__name__)

# The pause between two attempts to end a thread's request: the thread may begin the request after an attempt.
STOP_PAUSE_SECONDS = 0.05

A_PLAIN_FUNCTION = "give a plain function, or run it by AsyncConsumer"


@dataclass(slots=True)
class Hand:
    """The unsettled deliveries of a run; handler threads change them while other threads read them."""

    limits: Limits
    changed: threading.Condition
    deliveries: dict[str, Delivery] = field(default_factory=dict)

    def take(self, delivery: Delivery) -> None:
        with self.changed:
            self.deliveries[delivery.receipt_handle] = delivery

    def release(self, delivery: Delivery) -> None:
        with self.changed:
            self.deliveries.pop(delivery.receipt_handle, None)
            self.changed.notify_all()

    def all(self) -> list[Delivery]:
        with self.changed:
            return list(self.deliveries.values())

    def wanted(self) -> int:
        is_alone = any(delivery.alone for delivery in self.deliveries.values())
        return self.limits.wanted(len(self.deliveries), is_alone=is_alone)

    def wait_for_turn(self, delivery: Delivery, is_stopping: Callable[[], bool]) -> bool:
        """Waits until the delivery may begin; returns False at a stop.

        A delivery to be handled alone waits until no other is left. No delivery is received after it, so only earlier
        deliveries can be left. So if it kills this process, no other delivery has begun.
        """
        if not delivery.alone:
            return True
        with self.changed:
            self.changed.wait_for(lambda: len(self.deliveries) == 1 or is_stopping())
            return not is_stopping()

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> int:
        """Waits for room. Returns how many messages to receive; 0 at a stop."""
        with self.changed:
            self.changed.wait_for(lambda: self.wanted() > 0 or is_stopping())
            return 0 if is_stopping() else self.wanted()

    def wait_until_empty(self, timeout_seconds: float) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: not self.deliveries, timeout_seconds)


class Runner:
    """One run of a consumer: a thread that receives, a thread that extends, and `concurrency` threads that handle."""

    def __init__(self, consumer: Receipts, topic: str, handler: Handler, limits: Limits) -> None:
        self._consumer = consumer
        self._topic = topic
        self._handler = handler
        self._limits = limits
        self._hand = Hand(limits, threading.Condition())
        self._received: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        # Separate connections, so that a stop ends only the long polls; each has a thread that receives.
        self._lines = [consumer.broker.apart()]
        self._stopping = threading.Event()
        self._failed: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Runs until the event is set. Raises the broker's refusal if one ended the run."""
        self._stopping = stop
        receiving = [self._start(partial(self._receive, number), "receive") for number in range(len(self._lines))]
        self._start(self._extend, "extend")
        for _ in range(self._limits.concurrency):
            self._start(self._handle, "handle")
        try:
            stop.wait()
        finally:
            stop.set()
            self._stop(receiving)
        if self._failed is not None:
            raise self._failed

    def _start(self, work: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=f"{name} {self._topic} for {self._consumer.group}", daemon=True)
        thread.start()
        return thread

    def _stop(self, receiving: Sequence[threading.Thread]) -> None:
        give_up_at = time.monotonic() + self._limits.stop_seconds
        with self._hand.changed:
            self._hand.changed.notify_all()
        self._hang_up(receiving)
        while any(thread.is_alive() for thread in receiving) and time.monotonic() < give_up_at:
            self._hang_up(receiving)
        self._give_back()
        if not self._hand.wait_until_empty(max(give_up_at - time.monotonic(), 0)):
            log.warning(
                "%d messages of %s are still handled after %g s: they are handed out again",
                len(self._hand.deliveries),
                self._topic,
                self._limits.stop_seconds,
            )
        for line in self._lines:
            line.close()

    def _hang_up(self, receiving: Sequence[threading.Thread]) -> None:
        for line, thread in zip(self._lines, receiving, strict=True):
            line.hang_up()
            thread.join(STOP_PAUSE_SECONDS / len(receiving))

    def _give_back(self) -> None:
        """Returns deliveries that no handler has begun to the group, so that idle handlers end."""
        unbegun = []
        while not self._received.empty():
            unbegun.append(self._received.get())
        left = [delivery for delivery in unbegun if delivery is not None]
        for _ in range(self._limits.concurrency):
            self._received.put(None)
        self._return(left)

    def _return(self, unbegun: Sequence[Delivery]) -> None:
        give_back(self._consumer, self._topic, unbegun)
        for delivery in unbegun:
            self._hand.release(delivery)

    def _receive(self, number: int) -> None:
        try:
            self._receive_all(number)
        except Exception as error:
            # A run waits for this thread, so an unexpected error must end the run.
            log.exception("%s is received no more by %s", self._topic, self._consumer.group)
            self._end(error)

    def _receive_all(self, number: int) -> None:
        failures = 0
        while wanted := self._room(number):
            try:
                self._receive_once(number, wanted)
                failures = 0
            except errors.BrokerError as error:
                if self._stopping.is_set():
                    return
                if is_final(error):
                    self._end(error)
                    return
                failures += 1
                log.warning("%s was not received by %s: %s", self._topic, self._consumer.group, error)
                self._stopping.wait(round_pause_seconds(failures))

    def _topic_of(self, _delivery: Delivery) -> str:
        return self._topic

    def _room(self, _number: int) -> int:
        """Waits for room. Returns how many messages to receive; 0 at a stop."""
        return self._hand.wait_for_room(self._stopping.is_set)

    def _receive_once(self, number: int, wanted: int) -> None:
        receive = self._limits.receive(self._consumer.group, self._topic, wanted)
        for delivery in self._lines[number].do(receive, retry=Retry(1, self._lines[number].retry.seconds)):
            self._hand.take(delivery)
            self._received.put(delivery)

    def _extend(self) -> None:
        # Deliveries are extended during a stop, too, while handlers may still finish.
        while not self._ended():
            keep(self._consumer, self._topic, self._hand.all(), invisible_seconds=self._limits.invisible_seconds)

    def _ended(self) -> bool:
        """Waits for a third of the invisible time. Returns whether the run has ended by then."""
        if not self._stopping.wait(self._limits.invisible_seconds / 3):
            return False
        return self._hand.wait_until_empty(self._limits.invisible_seconds / 3)

    def _handle(self) -> None:
        while (delivery := self._received.get()) is not None:
            if not self._hand.wait_for_turn(delivery, self._stopping.is_set):
                self._return([delivery])
                continue
            try:
                context = handled(self._consumer.group, self._topic_of(delivery), delivery)
                with entered(self._consumer.broker.hooks, context):
                    context.result = result = self._handler(delivery)
                    require_run(result, A_PLAIN_FUNCTION)
                    messages = messages_of(result)
            except BaseException as error:
                # The handler is the program's own. An exception that is meant to end a thread ends the run.
                log.exception("message %s of %s was not handled", delivery.message.message_id, self._topic)
                self._settle(delivery, error)
                if not isinstance(error, Exception):
                    self._end(error)
            else:
                self._settle(delivery, None, messages)

    def _settle(self, delivery: Delivery, error: BaseException | None, messages: Sequence[Message] = ()) -> None:
        try:
            settle(self._consumer, self._topic, delivery, error, messages, stopping=self._stopping)
        finally:
            self._hand.release(delivery)

    def _end(self, error: BaseException) -> None:
        self._failed = self._failed or error
        self._stopping.set()


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Within the block SIGTERM and SIGINT set the event, if this is the main thread."""
    # The event is set in a thread, because the interrupted thread may hold the event's lock.
    with signals.heard(lambda: threading.Thread(target=stop.set).start()):
        yield
