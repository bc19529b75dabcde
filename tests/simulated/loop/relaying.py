"""The relay: its own threads and the run of its consumer, between a broker with faults and a target that is away."""

import asyncio
from collections import Counter, defaultdict
from typing import Any
from uuid import UUID

import aiohttp
from mqbroker_client.contrib.relay import Relay, TargetAway, TargetRefused, relays
from mqbroker_client.core import coalescing, later, running, signals
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.messages import Message, StoredMessage
from mqbroker_client.core.pool import ConnectionPool
from mqbroker_client.core.requests import Answer, Request

from tests.simulated.loop import threads
from tests.simulated.loop.brokers import RETRY, Memory, Wire
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.virtual import VirtualLoop, loop, process, require

TOPIC, GROUP = "orders", "bridge"
MESSAGES, KEYS = 8, 2
# A few, so that a message that the target refuses is soon a dead letter.
MOST_RETRIES = 2
FAULTS = ("away", "away behind", "refused", "crash")
# A connection that nobody answers is given up by the target's own client.
LATENCIES = (0.001, 0.05, 1.0, 12.0)
ABSENCES = (0.5, 5.0, 90.0)
#: The last tries of an ack, of what is given back, and of the caller's turn.
SLACK_SECONDS = 3 * RETRY.seconds
SETTLED_SECONDS = 900.0


class SimulatedPool(ConnectionPool):
    """The client's connections to its broker, through the simulated network."""

    def __init__(self, wire: Wire) -> None:
        super().__init__("http://simulated.invalid", 1)
        self._wire = wire
        self._running: list[asyncio.Future[Answer]] = []

    def request(self, request: Request, *, connect_seconds: float, seconds: float) -> Answer:
        answer = self._wire.sent(request)
        self._running.append(answer)
        try:
            if not threads.wait(answer, seconds):
                answer.cancel()
                raise TimeoutError("timed out")
            return answer.result()
        except (asyncio.CancelledError, aiohttp.ClientError) as problem:
            raise ConnectionResetError(f"the connection broke: {problem}") from None
        finally:
            self._running.remove(answer)

    def hang_up(self) -> None:
        for answer in self._running:
            answer.cancel()


class SimulatedBroker(Broker):
    """The threads' broker over the simulated network."""

    def __init__(self, wire: Wire) -> None:
        super().__init__("http://simulated.invalid", "key", retry=RETRY, timeout_seconds=4.0)
        self.wire = wire
        self._pools: list[ConnectionPool] = [SimulatedPool(wire)]

    def apart(self) -> Broker:
        apart = super().apart()
        apart._pools = [SimulatedPool(self.wire)]
        return apart


class Target:
    """The broker of another system: it is away for a while, loses confirmations, and refuses one message."""

    def __init__(self, of: VirtualLoop, poison: UUID | None) -> None:
        self._loop = of
        self._poison = poison
        self.faults = [fault for fault in FAULTS if of.chance.one_in(2)]
        self._away_until = 0.0
        #: What the target has, in the order in which it came.
        self.stored: list[StoredMessage] = []
        #: How often a publish of a message failed so that a retry has to be counted, or a second one has to come.
        self.refused: Counter[UUID] = Counter()
        self.unconfirmed: Counter[UUID] = Counter()
        #: Of each relay's process: the publishes under way, and whether it has closed the target.
        self.publishing: Counter[str] = Counter()
        self.closed: set[str] = set()
        self.late = 0

    def publish(self, message: StoredMessage) -> None:
        whose = process.get()
        self.late += whose in self.closed
        self.publishing[whose] += 1
        try:
            self._publish(message, self._fault())
        finally:
            self.publishing[whose] -= 1

    def _fault(self) -> str:
        chance = self._loop.chance
        return self.faults[chance.choose(len(self.faults))] if self.faults and chance.one_in(3) else ""

    def _publish(self, message: StoredMessage, fault: str) -> None:
        chance, id_ = self._loop.chance, message.message_id
        if fault == "away":
            self._away_until = self._loop.time() + ABSENCES[chance.choose(len(ABSENCES))]
        threads.sleep(LATENCIES[chance.choose(len(LATENCIES))])
        if self._loop.time() < self._away_until:
            raise TargetAway("it is away")
        if fault in ("refused", "crash") or id_ == self._poison:
            self.refused[id_] += 1
            raise ValueError("a fault of the target's client") if fault == "crash" else TargetRefused("illegal")
        self.stored.append(message)
        if fault == "away behind":
            self.unconfirmed[id_] += 1
            raise TargetAway("no confirmation came")

    def close(self) -> None:
        self.closed.add(process.get())


class Bridge:
    """The broker, the target and what one relay after the other has to hold."""

    def __init__(self) -> None:
        chance = loop().chance
        self.memory = Memory(loop())
        self.wire = Wire(self.memory)
        # A request that is refused for good ends a relay, which says so.
        self.wire.faults = [fault for fault in self.wire.faults if fault != "broken" and not chance.one_in(3)]
        self.is_ordered = chance.one_in(2)
        settings = {"ordered": self.is_ordered, "max_reconsume_times": MOST_RETRIES}
        self.memory.answer("PUT", f"/v1/consumer-groups/{GROUP}", settings)
        self.messages = [self._message(number) for number in range(MESSAGES)]
        poison = self.messages[chance.choose(MESSAGES)].message_id if chance.one_in(3) else None
        self.target = Target(loop(), poison)
        #: Whether each delivery has had its answer: no relay was killed, and no request met a fault.
        self.is_smooth = not self.wire.faults

    def _message(self, number: int) -> Message:
        message = Message(TOPIC, b"%d" % number, sharding_key=f"key {number % KEYS}" if self.is_ordered else None)
        self.memory.answer("POST", "/v1/messages", message.document())
        return message

    async def begun(self, name: str) -> tuple[threads.Thread, Any]:
        """A relay that begins, as a process of this name; the event stops it."""
        stop: Any = threads.Event()

        async def start() -> threads.Thread:
            relay = Relay(Consumer(SimulatedBroker(self.wire), GROUP), TOPIC, self.target, ordered=self.is_ordered)
            thread = threads.Thread(lambda: relay.run(concurrency=3, stop=stop), "relay")
            thread.start()
            return thread

        return await loop().of_process(name, start()), stop

    def settled(self) -> bool:
        """Whether the group is done with each message."""
        group = self.memory._groups.known[GROUP]
        reached = sum(group.reached.get((TOPIC, number), 0) for number in range(len(self.memory._topics.of(TOPIC))))
        return reached == MESSAGES and not group.pending

    def dead(self) -> set[UUID]:
        """The dead letters."""
        queues = self.memory._topics.queues.get(f"%DLQ%{GROUP}", ())
        return {UUID(entry["message"]["message_id"]) for queue in queues for entry in queue}


async def relaying() -> None:
    """A relay that is stopped or killed, and a second one that does the rest."""
    with threads.replaced(relays, running, signals, later, coalescing):
        bridge = Bridge()
        await _first(bridge)
        bridge.wire.is_calm = True
        bridge.target.faults = []
        await _second(bridge)
        _check(bridge)


async def _first(bridge: Bridge) -> None:
    chance = loop().chance
    thread, stop = await bridge.begun("relay")
    await asyncio.sleep((0.0, 0.3, 3.0, 40.0)[chance.choose(4)])
    if chance.one_in(3):
        loop().stop_process("relay")
        bridge.is_smooth = False
        return
    await _ended(bridge, thread, stop)


async def _ended(bridge: Bridge, thread: threads.Thread, stop: threads.Event) -> None:
    """The relay is stopped, and ends in time."""
    began = loop().time()
    stop.set()
    most = relays.STOP_SECONDS + SLACK_SECONDS
    await asyncio.wait([thread.ended], timeout=most)
    require(not thread.is_alive(), "a stop takes too long", f"{loop().time() - began:.2f} s")
    require(thread.process in bridge.target.closed, "the target's connections are left open")
    require(not bridge.target.publishing[thread.process], "a message is still published when the relay has ended")


async def _second(bridge: Bridge) -> None:
    thread, stop = await bridge.begun("another relay")
    until = loop().time() + SETTLED_SECONDS
    while not bridge.settled():
        require(loop().time() < until, "a message is never settled")
        require(thread.is_alive(), "a relay has ended by itself")
        await asyncio.sleep(1.0)
    await _ended(bridge, thread, stop)
    # What handles and extends ends by itself behind the run, which does not wait for it.
    await asyncio.sleep(RETRY.seconds)
    left = [one.name for one in loop().threads if one.is_alive() and one.process == "another relay"]
    require(not left, "a thread is left", left)


def _check(bridge: Bridge) -> None:
    target, dead = bridge.target, bridge.dead()
    stored = Counter(message.message_id for message in target.stored)
    require(not target.late, "a message is published behind the close of its target")
    for number, message in enumerate(bridge.messages):
        id_ = message.message_id
        require(id_ in stored or id_ in dead, "a message was acked that the target has not confirmed", number)
        if bridge.is_smooth:
            once = 1 if id_ in stored else 0
            most = once + target.unconfirmed[id_]
            require(stored[id_] <= most, "a confirmed message is published again", number, stored[id_])
            require(id_ not in dead or target.refused[id_], "an absence of the target was counted as a retry", number)
    if bridge.is_ordered:
        _check_order(bridge)


def _check_order(bridge: Bridge) -> None:
    first: dict[str | None, list[UUID]] = defaultdict(list)
    for message in bridge.target.stored:
        if message.message_id not in first[message.sharding_key]:
            first[message.sharding_key].append(message.message_id)
    for key, ids in first.items():
        sent = [one.message_id for one in bridge.messages if one.sharding_key == key and one.message_id in ids]
        require(ids == sent, "a message has overtaken an earlier one of its key", key)


SCENARIOS = (Scenario("relay", "A relay's threads, its broker and its target.", relaying),)
