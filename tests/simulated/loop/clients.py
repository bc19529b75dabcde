"""The client: its lane of coalesced calls, its retries, the run of a consumer and the poller of checks."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mqbroker_client.aio.polling import AsyncCheckPoller
from mqbroker_client.aio.producers import AsyncProducer
from mqbroker_client.aio.receipts import AsyncReceipts
from mqbroker_client.aio.running import CANCEL_SECONDS, AsyncRunner
from mqbroker_client.core import errors
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.retries import PASSING
from mqbroker_client.core.runs import Limits
from mqbroker_client.core.states import LocalTransactionState

from tests.simulated.loop.brokers import RETRY, Memory, SimulatedBroker
from tests.simulated.loop.exploring import Scenario
from tests.simulated.loop.virtual import Broken, loop, require

TOPIC, GROUP = "orders", "shop"
CLIENT = "client"
#: Of the caller's own turn behind the last try.
SLACK_SECONDS = 0.1
#: Without a fault a call waits for the one that is under way, and for its own.
CALM_SECONDS = 1.5


async def coalescing() -> None:
    """Callers whose sends go together: each has the answer to its own message, and none is stored twice."""
    memory = Memory(loop())
    broker = SimulatedBroker(memory)
    producer = AsyncProducer(broker, GROUP)
    if loop().chance.one_in(3):
        broker.wire.faults, memory.may_fail = [], False

    async def caller(number: int) -> None:
        for count in range(3):
            message = Message(TOPIC, b"%d %d" % (number, count))
            chance = loop().chance
            hangs_up = (0.0, 0.001, 0.05, 1.0)[chance.choose(4)] if number == 0 else None
            await _sent(producer, memory, message, hangs_up)

    work = [loop().of_process(CLIENT, caller(number)) for number in range(6)]
    await asyncio.gather(*work)
    broker.wire.is_calm = True
    await loop().of_process(CLIENT, broker.close())
    await _rest(broker)
    lane = broker._line().lane
    require(lane is not None and not lane.waiting() and not lane._under_way, "the lane is stuck")
    counted = Counter(entry["message"]["message_id"] for queue in memory._topics.of(TOPIC) for entry in queue)
    require(max(counted.values(), default=1) == 1, "a message is stored twice", counted.most_common(1))


async def _sent(producer: AsyncProducer, memory: Memory, message: Message, hangs_up: float | None) -> None:
    """One send, and what has to hold of its answer."""
    began = loop().time()
    try:
        async with asyncio.timeout(hangs_up):
            sent = await producer.send_message(message)
    except TimeoutError:
        require(hangs_up is not None, "a time-out that is nobody's")
        return
    except PASSING:
        pass
    except errors.BrokerError as error:
        # The network's gateway says so of a call by itself, too.
        require(error.status == 400, "a refusal that nobody gave", error)
    else:
        require(sent.message_id == message.message_id, "a caller has another one's answer")
        stored = memory._topics._sent.get(str(message.message_id))
        require(stored is not None, "an acknowledged message is lost")
        if stored is not None:
            place = stored[1]["queue_id"], stored[1]["queue_offset"]
            require((sent.queue_id, sent.queue_offset) == place, "an answer is wrong", sent)
    took = loop().time() - began
    most = RETRY.seconds if memory.may_fail else CALM_SECONDS
    require(took <= most + SLACK_SECONDS, "a caller has waited for too long", f"{took:.2f} s")


async def _rest(broker: SimulatedBroker) -> None:
    """Until the broker has done what was under way, and nothing of the client is left."""
    # Longer than a long poll and its latencies.
    await asyncio.sleep(5.0)
    require(not broker.wire.under_way, "the broker works at a request that nobody waits for")
    require(not loop().unfinished(), "a task is left", loop().unfinished())


class Handling:
    """A handler of messages that takes its time and fails now and then, and what it was handed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.handled: Counter[UUID] = Counter()
        self.done: set[UUID] = set()
        #: What was done in the run that nothing interrupts, and whether such a message came again.
        self.done_lately: set[UUID] = set()
        self.is_twice = False
        self._running: set[UUID] = set()

    async def __call__(self, delivery: Delivery) -> None:
        id_, chance = delivery.message.message_id, loop().chance
        # The run would take what is raised here for a failure of its handler.
        self.is_twice |= id_ in self._running or id_ in self.done_lately
        self._running.add(id_)
        self.handled[id_] += 1
        try:
            await asyncio.sleep((0.0, 0.05, 1.0, 4.0)[chance.choose(4)])
            if chance.one_in(4):
                raise ValueError("the handler failed")
            self.done.add(id_)
            self.done_lately.add(id_)
        finally:
            self._running.discard(id_)


LIMITS = Limits(concurrency=3, ordered=False, invisible_seconds=30.0, wait_seconds=2.0, stop_seconds=3.0)
#: Shorter than a handler takes: its message is extended. Only where no extension is lost.
SHORT_SECONDS = 3.0
MESSAGES = 8


async def running() -> None:
    """The run of a consumer beside a network with faults; it is stopped, and a second run does the rest."""
    memory = Memory(loop())
    broker = SimulatedBroker(memory)
    ids = []
    for number in range(MESSAGES):
        message = Message(TOPIC, b"%d" % number)
        ids.append(message.message_id)
        memory.answer("POST", "/v1/messages", message.document())
    handling, limits = Handling(memory), LIMITS
    if loop().chance.one_in(3):
        broker.wire.faults, limits = [], replace(LIMITS, invisible_seconds=SHORT_SECONDS)
    await _one_run(broker, handling, limits, (0.0, 0.1, 1.5, 8.0)[loop().chance.choose(4)])
    broker.wire.is_calm = True
    handling.done_lately.clear()
    stopping = asyncio.Event()
    runner = AsyncRunner(AsyncReceipts(broker, GROUP), TOPIC, handling, limits)
    second = loop().of_process(CLIENT, runner.run(stopping))
    until = loop().time() + 900
    while len(handling.done) < MESSAGES or memory._groups.known[GROUP].pending:
        require(loop().time() < until, "a message is never settled")
        await asyncio.sleep(1.0)
        require(not handling.is_twice, "a message that was done comes again, though it was extended")
    stopping.set()
    await second
    await loop().of_process(CLIENT, broker.close())
    await _rest(broker)
    for id_ in ids:
        require(id_ in handling.done, "a message was acked that no handler has done", id_)


async def _one_run(broker: SimulatedBroker, handling: Handling, limits: Limits, seconds: float) -> None:
    """A run that is stopped after a while, or whose task is cancelled; it ends in time."""
    stopping = asyncio.Event()
    runner = AsyncRunner(AsyncReceipts(broker, GROUP), TOPIC, handling, limits)
    run = loop().of_process(CLIENT, runner.run(stopping))
    await asyncio.sleep(seconds)
    began = loop().time()
    if loop().chance.one_in(3):
        run.cancel()
    stopping.set()
    try:
        await run
    except asyncio.CancelledError:
        pass
    except errors.BrokerError as error:
        require(error.status == 400, "a run ended by what nobody said", error)
    # What was settled last has its tries, and what no handler has begun is given back with as many.
    most = 2 * RETRY.seconds + LIMITS.stop_seconds + CANCEL_SECONDS + SLACK_SECONDS
    require(loop().time() - began <= most, "a stop takes too long", f"{loop().time() - began:.2f} s")
    await asyncio.sleep(0)
    require(not runner._begun, "a handler runs behind the end of its run")


async def checking() -> None:
    """The poller of checks: each half is decided as its check says, and the poller stops in time."""
    memory = Memory(loop())
    broker = SimulatedBroker(memory)
    producer = AsyncProducer(broker, GROUP)
    states = (LocalTransactionState.COMMIT, LocalTransactionState.ROLLBACK, LocalTransactionState.UNKNOWN)
    decided: dict[str, LocalTransactionState] = {}
    for number in range(5):
        id_ = str(UUID(int=number + 1))
        memory.answer(
            "POST",
            "/v1/transactions",
            {**Message(TOPIC, b"half").document(), "transaction_id": id_, "producer_group": GROUP},
        )
        decided[id_] = states[loop().chance.choose(2)]

    async def check(half: HalfMessage) -> LocalTransactionState:
        await asyncio.sleep((0.0, 0.02, 0.5)[loop().chance.choose(3)])
        if loop().chance.one_in(5):
            raise ValueError("the check failed")
        return states[2] if loop().chance.one_in(5) else decided[str(half.transaction_id)]

    poller = AsyncCheckPoller(producer, check, wait_seconds=2.0, max_transactions=2)
    loop().of_process(CLIENT, _started(poller))
    await asyncio.sleep((6.0, 7.0, 40.0)[loop().chance.choose(3)])
    broker.wire.is_calm = True
    await _until_decided(memory, decided)
    began = loop().time()
    await loop().of_process(CLIENT, poller.stop())
    require(loop().time() - began <= RETRY.seconds + 1, "a stop takes too long", f"{loop().time() - began:.2f} s")
    await loop().of_process(CLIENT, broker.close())
    await _rest(broker)


async def _started(poller: AsyncCheckPoller) -> None:
    poller.start()


async def _until_decided(memory: Memory, decided: dict[str, LocalTransactionState]) -> None:
    until = loop().time() + 600
    named = {LocalTransactionState.COMMIT: "COMMITTED", LocalTransactionState.ROLLBACK: "ROLLED_BACK"}
    while True:
        known = memory._transactions.known
        wrong = [id_ for id_, one in known.items() if one.state not in ("PREPARED", named[decided[id_]])]
        if wrong:
            raise Broken(f"a transaction is decided against its check: {wrong}")
        if all(one.state != "PREPARED" for one in known.values()):
            return
        require(loop().time() < until, "a half is never decided")
        await asyncio.sleep(1.0)


SCENARIOS: Sequence[Scenario] = (
    Scenario("client-coalescing", "Sends of one event loop that go together, with their retries.", coalescing),
    Scenario("client-run", "A consumer's run: handlers, extensions, settling, stops.", running),
    Scenario("client-checks", "The poller of checks.", checking),
)
