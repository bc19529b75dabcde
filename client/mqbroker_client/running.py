"""Consumers that run: they receive, hand each message to a function, extend meanwhile, ack or nack at its end."""

import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

from mqbroker_client import errors, tracing
from mqbroker_client.calls import Call, in_utf8
from mqbroker_client.calls import consumer as calls
from mqbroker_client.handlers import Handler, require_run
from mqbroker_client.messages import Delivery
from mqbroker_client.retries import Retry

if TYPE_CHECKING:
    from mqbroker_client.consumers import Consumer

log = logging.getLogger(__name__)

#: The default of the broker's MAX_RECEIVE_MESSAGES.
MOST_RECEIVED = 32
LONGEST_REASON = 1_000
LONGEST_PAUSE_SECONDS = 10.0
# Between two looks at a thread that may just have begun its request.
STOP_PAUSE_SECONDS = 0.05

A_PLAIN_FUNCTION = "give a plain function, or run it by AsyncConsumer"
MAY_NOT_READ = "the API key may not read the consumer group: give ordered=True or ordered=False"


class Redeliver(Exception):
    """Raised by a handler: not done, hand it out again after this time, and not after the group's retry delay."""

    def __init__(self, delay_seconds: float, reason: str | None = None) -> None:
        super().__init__(reason or f"to be handed out again in {delay_seconds:g} s")
        self.delay_seconds = delay_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a consumer runs.

    `ordered`: whether its group is; None: the broker is asked, for which the API key needs the scope `manage`.
    `stop_seconds`: what a stop gives the handlers that run; what still runs then is handed out again later.
    """

    concurrency: int = 8
    ordered: bool | None = None
    filter: str | Mapping[str, str] | None = None
    invisible_seconds: float = 60.0
    wait_seconds: float = 20.0
    stop_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"concurrency is {self.concurrency}: at least one handler has to run")

    def wanted(self, in_hand: int, ordered: bool) -> int:
        """How many messages to receive now.

        A receive of an ordered group is for one message: what follows a message that fails, in the same receive, could
        neither be handled before it nor be given back without an attempt of its own. So as many queues are in hand.
        """
        if ordered:
            return 1 if in_hand < self.concurrency else 0
        return min(2 * self.concurrency - in_hand, MOST_RECEIVED)


@dataclass(slots=True)
class Hand:
    """The deliveries that are not settled yet; handlers change it while others read it."""

    limits: Limits
    ordered: bool = False
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

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
        return self.limits.wanted(len(self.deliveries), self.ordered)

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> int:
        """How many messages to receive, once there is room; 0 at a stop."""
        with self.changed:
            self.changed.wait_for(lambda: self.wanted() > 0 or is_stopping())
            return 0 if is_stopping() else self.wanted()

    def wait_until_empty(self, timeout_seconds: float) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: not self.deliveries, timeout_seconds)


class Runner:
    """One run of a consumer: a thread that receives, one that extends, and `concurrency` of them that handle."""

    def __init__(self, consumer: "Consumer", topic: str, handler: Handler, limits: Limits) -> None:
        self._consumer = consumer
        self._topic = topic
        self._handler = handler
        self._limits = limits
        self._hand = Hand(limits)
        self._received: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        # Of its own, so that a stop ends the long poll and nothing else.
        self._line = consumer.broker.apart()
        self._stopping = threading.Event()
        self._failed: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Until the event is set. Raises what ended the run: a refusal of the broker."""
        self._hand.ordered = ordered(self._limits, lambda: self._consumer.is_ordered())
        self._stopping = stop
        receiving = self._start(self._receive, "receive")
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

    def _stop(self, receiving: threading.Thread) -> None:
        give_up_at = time.monotonic() + self._limits.stop_seconds
        with self._hand.changed:
            self._hand.changed.notify_all()
        self._line.hang_up()
        receiving.join(STOP_PAUSE_SECONDS)
        while receiving.is_alive() and time.monotonic() < give_up_at:
            self._line.hang_up()
            receiving.join(STOP_PAUSE_SECONDS)
        self._give_back()
        if not self._hand.wait_until_empty(max(give_up_at - time.monotonic(), 0)):
            log.warning(
                "%d messages of %s are still handled after %g s: they are handed out again",
                len(self._hand.deliveries),
                self._topic,
                self._limits.stop_seconds,
            )
        self._line.close()

    def _give_back(self) -> None:
        """What no handler has begun goes back at once; then the handlers that are free end."""
        unbegun = []
        while not self._received.empty():
            unbegun.append(self._received.get())
        left = [delivery for delivery in unbegun if delivery is not None]
        for _ in range(self._limits.concurrency):
            self._received.put(None)
        try:
            self._consumer.nack(left, delay_seconds=0)
        except errors.BrokerError as error:
            log.warning("%d messages of %s come again later: %s", len(left), self._topic, error)
        for delivery in left:
            self._hand.release(delivery)

    def _receive(self) -> None:
        try:
            self._receive_all()
        except Exception as error:
            # Without this thread the run would wait for ever.
            log.exception("%s is received no more by %s", self._topic, self._consumer.group)
            self._end(error)

    def _receive_all(self) -> None:
        failures = 0
        while wanted := self._hand.wait_for_room(self._stopping.is_set):
            try:
                for delivery in self._line.do(self._call(wanted), retry=Retry(1, self._line.retry.seconds)):
                    self._hand.take(delivery)
                    self._received.put(delivery)
                failures = 0
            except errors.BrokerError as error:
                if self._stopping.is_set():
                    return
                if is_final(error):
                    self._end(error)
                    return
                failures += 1
                log.warning("%s was not received by %s: %s", self._topic, self._consumer.group, error)
                self._stopping.wait(min(0.5 * 2 ** min(failures, 10), LONGEST_PAUSE_SECONDS))

    def _call(self, wanted: int) -> Call[list[Delivery]]:
        limits = self._limits
        return calls.receive(
            self._consumer.group,
            self._topic,
            max_messages=wanted,
            wait_seconds=limits.wait_seconds,
            invisible_seconds=limits.invisible_seconds,
            filter=limits.filter,
        )

    def _extend(self) -> None:
        # Also while it stops: the handlers that run are given their time.
        while not self._ended():
            deliveries = self._hand.all()
            try:
                self._consumer.extend(deliveries, invisible_seconds=self._limits.invisible_seconds)
            except errors.BrokerError as error:
                log.warning("%d messages of %s were not extended: %s", len(deliveries), self._topic, error)

    def _ended(self) -> bool:
        """Wait for a third of the invisible time; whether the run is over by then."""
        if not self._stopping.wait(self._limits.invisible_seconds / 3):
            return False
        return self._hand.wait_until_empty(self._limits.invisible_seconds / 3)

    def _handle(self) -> None:
        while (delivery := self._received.get()) is not None:
            try:
                with tracing.handling(delivery.message.traceparent, self._topic, self._consumer.group):
                    require_run(self._handler(delivery), A_PLAIN_FUNCTION)
            except BaseException as error:
                # The function is the program's own. What is raised to end a thread ends the run.
                log.exception("message %s of %s was not handled", delivery.message.message_id, self._topic)
                self._settle(delivery, error)
                if not isinstance(error, Exception):
                    self._end(error)
            else:
                self._settle(delivery, None)

    def _settle(self, delivery: Delivery, error: BaseException | None) -> None:
        try:
            if error is None:
                self._consumer.ack([delivery])
            else:
                self._consumer.nack([delivery], delay_seconds=delay_seconds(error), reason=reason_of(error))
        except Exception as problem:  # noqa: BLE001  a delay that is no number, too: the thread goes on
            log.warning("message %s of %s comes again: %s", delivery.message.message_id, self._topic, problem)
        finally:
            self._hand.release(delivery)

    def _end(self, error: BaseException) -> None:
        self._failed = self._failed or error
        self._stopping.set()


def ordered(limits: Limits, ask: Callable[[], bool]) -> bool:
    """Whether the group is ordered, as given or else as the broker answers. Raises ValueError where it may not."""
    if limits.ordered is not None:
        return limits.ordered
    try:
        return ask()
    except errors.Forbidden as error:
        raise ValueError(MAY_NOT_READ) from error


def is_final(error: errors.BrokerError) -> bool:
    """Whether the same request would be refused again. A topic that is not there yet may come."""
    refusals = (errors.BadRequest, errors.Unauthenticated, errors.Forbidden, errors.Refused)
    return isinstance(error, refusals)


def delay_seconds(error: BaseException) -> float | None:
    """The delay that a handler asked for."""
    return error.delay_seconds if isinstance(error, Redeliver) else None


def reason_of(error: BaseException) -> str:
    """What the message's trace keeps."""
    return in_utf8(f"{type(error).__name__}: {error}")[:LONGEST_REASON]


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set the event, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def set_stop(number: int, frame: FrameType | None) -> None:
        # In a thread: the one that is interrupted here may hold the event's lock.
        threading.Thread(target=stop.set).start()

    before = {number: signal.signal(number, set_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
